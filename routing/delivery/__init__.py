"""How events come to sinks: who wants which, in which order, and how many may wait.

``sinks`` have a bounded queue each; ``subscriptions`` say what a sink asked for, ``selection``
matches many of them together, ``subscriber_index`` chooses between asking and matching. A
``delivery_batch`` is what goes to one sink, ``holdback`` keeps the order of composite events
(tesla.md E4), and ``merged_detections`` puts together those that several brokers found. ``durable``
sinks stay when their clients go, those of ``arriving_sink`` gather what comes for one of these on
its way to this broker, and ``deduplicator`` leaves out what comes again where a network changes.
"""
