"""What earlier measurements teach: what other programs have in common with the one to be tuned."""
