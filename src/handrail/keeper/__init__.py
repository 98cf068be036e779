"""The keeper: the process that starts every other process, owns every PTY and outlives the daemon."""

EXPORTS = {
    "lineage": "",
    "message_framing": "FRAME_MAX FrameError encode",
    "protocol": (
        "Attached CheckedProgram Done Exit Exited Failed Forget Grown Health Healthy Hello Input Kept "
        "Listen Listening Look Looked NOT_READING NO_REPLY Notice Overheard PROTOCOL RESTART_KEY Recall Recalled "
        "Refused Remember Replaced Reply Report Request Resize Resized Seen Shutdown Signal Start Started Stop "
        "Stopped Swept Typed Unrecorded Welcome from_keeper skew"
    ),
}
"""Public names by module: other packages import only these. An empty entry exports the module itself."""
