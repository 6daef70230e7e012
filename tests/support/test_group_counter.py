"""Groups that the API took, refused and stranded are told apart."""

import asyncio
import json

from tests.support.group_counter import GroupCounter


def test_groups_taken_refused_and_stranded_are_told_apart():
    replies = iter(
        [
            (200, {"status": "received"}),
            (200, {"status": "received", "groups_processed": 3, "buffered": 1}),
            (200, {"status": "buffered", "buffer_size": 5}),
            (422, {"detail": []}),
        ]
    )

    async def inner(scope, receive, send):
        status, body = next(replies)
        await send({"type": "http.response.start", "status": status})
        await send({"type": "http.response.body", "body": json.dumps(body).encode()})

    async def send(message):
        pass

    async def post_all(counted):
        for _ in range(4):
            await counted({"path": "/scored_data"}, None, send)

    counted = GroupCounter(inner)
    asyncio.run(post_all(counted))
    first = counted.counts.pop("first")
    assert first is not None
    assert counted.counts == {"accepted": 3, "buffered": 2, "rejected": 1}
