"""A broker seen by programs and by people, over HTTP.

``rexmq broker --http 127.0.0.1:9464`` answers at

- ``/metrics``: figures in the text form of Prometheus (``metrics``);
- ``/healthz`` and ``/readyz``: 200, or 503 with the reason (``health``);
- ``/status.json``: everything that ``rexmq status --json`` shows;
- ``/events``: events in and out, for programs (``events``);
- ``/ws``: the protocol of clients, for browsers (``web_sockets``);
- ``/``: the page for people, a folder of plain files (``page``), and what it asks (``api``).

Who looks costs the broker next to nothing. The pages are served by a process of their own
(``server``), which is one more client of the broker: it asks for the status at most once a second,
however many requests come, and none while nobody looks (``looks``). They do not depend on the
broker's thread: where it gives no answer within some seconds, ``/healthz`` says so. Nobody sees or
changes more than the broker itself would let (``entry``).

Modules: ``monitor`` holds the address and keeps the process running, in the broker, and gives it
its ``settings``; ``server`` is that process, of ``pages`` over ``looks``. For the page, a ``board``
makes the state of the network (``view``, ``layout``, ``gathered``, ``figures``), of whose lists a
browser is sent ``windows``, with what rules have found lately (``history``). A ``tap`` keeps events
(``rows``), ``changes`` checks and deploys rules, a ``bench`` has them tried (``trial``), and
``operations`` are what an operator asks for. For programs, ``events`` reads CloudEvents, whose
``posts`` it publishes, and opens ``event_streams``; ``web_sockets`` are links of clients. All
requests pass a ``doorway``, which shares them out (``shares``); ``deadlines`` end connections,
``assets`` are the page's files.
"""
