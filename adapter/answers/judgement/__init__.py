"""One judgement of a HorizontalPodAutoscaler, for every list, page, alert and explanation.

:func:`adapter.answers.judgement.judge.judge` alone decides an HPA's state. A list knows less than
an explanation, and both pass what they know through it.
"""
