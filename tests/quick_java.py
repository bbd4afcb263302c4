"""Options of Java for processes that live for a test."""

QUICK = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions "
    "-XX:-BytecodeVerificationRemote"
)
"""No test runs for so long that Java's second compiler would gain more time than it takes, and
verifying the twenty thousand classes of Spark takes as long as a test."""
