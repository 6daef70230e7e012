"""A score server in a thread of its own, and requests to it."""

import asyncio
import contextlib
import http.client
import json
import socket
import threading

from rg_env.serving import serve

GUARD_S = 60.0


class Served:
    def __init__(self, application, **options):
        self.application = application
        self.loop = asyncio.new_event_loop()
        listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.address = listener.getsockname()
        options["log_level"] = "error"
        served = serve(application, listener, **options)
        self._task = self.loop.create_task(served)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        with contextlib.suppress(asyncio.CancelledError):
            self.loop.run_until_complete(self._task)
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    def stop(self):
        self.loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()

    @property
    def url(self):
        return "http://{}:{}".format(*self.address)

    def connect(self):
        """Return a connection that is closed with its context."""
        return contextlib.closing(socket.create_connection(self.address, GUARD_S))

    def request(self, method, path, body=None, **headers):
        """Return the status, the body as JSON, and the headers of a reply."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        client = http.client.HTTPConnection(*self.address, timeout=GUARD_S)
        with contextlib.closing(client):
            json_too = {"Content-Type": "application/json", **headers}
            client.request(method, path, body, json_too)
            reply = client.getresponse()
            return reply.status, json.load(reply), reply.headers

    def post(self, path, body):
        return self.request("POST", path, body)[:2]

    def get(self, path):
        status, reply, _ = self.request("GET", path)
        assert status == 200, reply
        return reply
