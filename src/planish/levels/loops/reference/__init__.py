"""What a program computes, independent of schedules and generators: answers, inputs, bounds of errors."""
