"""What past rounds teach: histories and forecasts, boot times, the pace of HPAs, idle GPUs."""
