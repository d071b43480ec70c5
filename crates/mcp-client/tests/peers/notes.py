"""A small MCP server. Usage: notes.py FRAMEWORK TRANSPORT

FRAMEWORK is `fastmcp` for FastMCP 4, which supports protocol 2026-07-28, or `mcp` for the older SDK.
TRANSPORT is `stdio` or `http`. With `http`, the server prints its port once it listens.
"""

import asyncio
import socket
import sys

from pydantic import BaseModel

framework, transport = sys.argv[1:]
if framework == "fastmcp":
    from fastmcp import Context, FastMCP
    from fastmcp.exceptions import ToolError
else:
    from mcp.server.fastmcp import Context, FastMCP
    from mcp.server.fastmcp.exceptions import ToolError

server = FastMCP("notes")
notes: dict[str, str] = {}
wait_cancelled = asyncio.Event()


class Colour(BaseModel):
    colour: str


@server.tool()
async def put(name: str, text: str) -> str:
    """Stores a note."""
    notes[name] = text
    return f"{name} is kept"


@server.tool()
async def get(name: str) -> str:
    """Returns a note."""
    if name not in notes:
        raise ToolError(f"there is no note {name}")
    return notes[name]


@server.tool()
async def count(to: int, ctx: Context) -> int:
    """Counts and reports its progress."""
    for number in range(1, to + 1):
        await ctx.report_progress(number, to)
    return to


@server.tool()
async def wait(ctx: Context) -> str:
    """Runs until the call is cancelled."""
    try:
        await ctx.report_progress(1, 2)
        await asyncio.Event().wait()
    finally:
        wait_cancelled.set()
    return "never"


@server.tool()
async def was_given_up() -> bool:
    """Returns once `wait` has been cancelled."""
    await wait_cancelled.wait()
    return True


@server.tool()
async def ask(ctx: Context) -> str:
    """Asks the user for a colour."""
    answer = await ctx.elicit("Which colour?", Colour)
    return f"{answer.action} {answer.data.colour}" if answer.action == "accept" else answer.action


async def listen() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    if framework == "fastmcp":
        await server.run_http_async(show_banner=False, log_level="error", sockets=[listener])
    else:
        import uvicorn

        config = uvicorn.Config(server.streamable_http_app(), log_level="error")
        await uvicorn.Server(config).serve(sockets=[listener])


if transport == "http":
    asyncio.run(listen())
else:
    server.run(transport="stdio")
