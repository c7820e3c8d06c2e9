"""Cost models and policies as searches use them, and the ones that planish ships."""
