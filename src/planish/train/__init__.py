"""Training of what `planish.models` loads: cost models, policies and language models, and their corpora."""
