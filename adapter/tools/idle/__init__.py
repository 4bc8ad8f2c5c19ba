"""``idle``: which GPUs do nothing, who has them, and what they cost."""
