"""Answers to clients: metrics APIs, view API, KEDA scaler, rules, causes and judgements."""
