"""Logs, metrics and traces: one logger, one set of metrics and one tracer for a function.

Prompts, drafts and collected text are never logged: run keys, reasons and counts are.
"""

from aws_lambda_powertools import Logger, Metrics, Tracer

logger = Logger(service=None, use_rfc3339=True, utc=True)
metrics = Metrics(namespace=None)
tracer = Tracer()
