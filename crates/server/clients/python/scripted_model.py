"""A scripted model server for the Chat Completions protocol."""

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# The server at SCRIPTED_URL expects the model on this port.
PORT = int(os.environ["SWITCHBOARD_SCRIPTED_PORT"])


class ScriptedModel:
    """Answers each request with the next answer: a text, or a list of (tool name, arguments)."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []

    def __enter__(self) -> "ScriptedModel":
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                model.requests.append(request)
                status = 200 if model.answers else 500
                body, content_type = b"{}", "application/json"
                if model.answers:
                    body, content_type = render_response(request, model.answers.pop(0))
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def render_response(request: dict, answer) -> tuple[bytes, str]:
    """Returns the body and the content type of an answer, streamed if the request asks for it."""
    message = {"role": "assistant"}
    if isinstance(answer, str):
        message["content"] = answer
    else:
        message["tool_calls"] = [
            {
                "index": index,
                "id": f"call_{len(request['messages'])}_{index}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for index, (name, arguments) in enumerate(answer)
        ]
    reason = "stop" if isinstance(answer, str) else "tool_calls"
    head = {"id": "scripted", "created": 1, "model": "scripted"}
    if not request.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": reason}
        body = {**head, "object": "chat.completion", "choices": [choice]}
        return json.dumps(body).encode(), "application/json"
    choice = {"index": 0, "delta": message, "finish_reason": reason}
    chunk = {**head, "object": "chat.completion.chunk", "choices": [choice]}
    return f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode(), "text/event-stream"
