"""Functions as programs: a module's text split, normalised, named by its content, and given attributes."""
