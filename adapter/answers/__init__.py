"""What clients are told: metrics APIs, view API, KEDA scaler, rules, causes and judgements."""
