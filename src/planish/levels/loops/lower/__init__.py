"""From a schedule to the loop tree that code generators take."""
