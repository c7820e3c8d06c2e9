"""The level `loops`: tensor computations, whose candidates are loop schedules."""
