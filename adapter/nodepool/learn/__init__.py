"""Evaluate past rounds: histories and forecasts, boot times, the pace of HPAs, idle GPUs."""
