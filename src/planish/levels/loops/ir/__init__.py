"""What a schedule is, its rules, and the loop tree that it becomes."""
