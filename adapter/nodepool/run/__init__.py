"""The process: wiring, watches, leader election, the loop of rounds, metrics and reports."""
