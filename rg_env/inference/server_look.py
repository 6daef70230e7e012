"""A look at an inference server: whether it is one, and of which type.

Nothing is generated: pages are read, and where a page makes one doubt that the route of
our type is there, that route is asked with an empty object, which a server that has it
refuses.

    route          what our type asks: /generate, /generate/ or /chat/completions
    /models        OpenAI's list; says whether the key is taken
    /version, /get_model_info, ...   what tells the kinds of servers apart
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import ssl
import urllib.request
from collections.abc import Mapping
from types import MappingProxyType, TracebackType
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from rg_env import patience
from rg_env.errors import SettingError, nearest
from rg_env.inference.connection_faults import (
    BAD_CERTIFICATE,
    CUT,
    NEVER_BY_WAITING,
    NO_SUCH_HOST,
    NO_TLS,
    fault_of,
)
from rg_env.inference.reply_reasons import (
    NO_ROUTE,
    Reply,
    parsed,
    read_refusal,
    why_key,
)
from rg_env.inference.route_probe import NoRouteError, UnfitRouteError
from rg_env.inference.token_replies import TOKEN_IDS

ROUTES = {
    "vllm": "/generate",
    "sglang": "/generate",
    "trl": "/generate/",
    "openai": "/chat/completions",
}
"""Server type to what its client asks, behind the URL that the client makes."""

MOST_BYTES = 2**18
"""Read of a page; lists of models are long."""

MOST_MODELS = 8
"""Named in a sentence."""

FIRST_SERVER_FAULT = 500
REFUSED_KEY = frozenset({401, 403})
MOVED = frozenset({301, 302, 303})
"""Redirects at which a client asks without the body."""

SENT_ON = MOVED | {307, 308}
LATER = frozenset({408, 425, 429})
"""Statuses of a server that is busy, and says nothing of the request."""

SERVE_NEEDS = (
    "`serve` needs token ids with log-probabilities, as vLLM, SGLang and newer TRL"
    " return them"
)


@dataclasses.dataclass(frozen=True)
class Page:
    """What came of asking for a page.

    Attributes:
        status: Of HTTP, 0 where no reply came.
        text: The body.
        is_html: Whether it is for people.
        location: Where a redirect leads.
        fault: Why no reply came.
    """

    status: int = 0
    text: str = ""
    is_html: bool = False
    location: str | None = None
    fault: str | None = None

    @property
    def value(self) -> Any:
        """The JSON of a page that is well, None of any other."""
        return parsed(self.text) if self.status == 200 and not self.is_html else None

    def holds(self, key: str) -> Any:
        """Return a value of the page's JSON object, None where there is none."""
        value = self.value
        return value.get(key) if isinstance(value, dict) else None

    @property
    def has_no_route(self) -> bool:
        """Whether a request that was posted came to nothing that takes requests."""
        is_for_people = self.is_html and self.status < FIRST_SERVER_FAULT
        is_away = self.status in NO_ROUTE | MOVED or self._only_adds_a_slash
        return is_away or (is_for_people and self.status not in REFUSED_KEY | LATER)

    @property
    def _only_adds_a_slash(self) -> bool:
        return self.status in SENT_ON and (self.location or "").endswith("/generate/")


class NotThere(Exception):
    """No reply came, and one may come later; the text says what is known."""


class Pages:
    """Asks one server for pages.

    Args:
        key: Sent with each request.
        headers: Likewise.
        by_proxy: Whether a proxy of the environment's variables is used.
    """

    def __init__(
        self,
        key: str | None,
        headers: Mapping[str, str] = MappingProxyType({}),
        *,
        by_proxy: bool,
    ) -> None:
        own = {"Authorization": f"Bearer {key}"} if key else {}
        self._headers = own | dict(headers)
        self._by_proxy = by_proxy
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Pages:
        """Open the connections."""
        self._session = aiohttp.ClientSession(
            headers=self._headers,
            timeout=aiohttp.ClientTimeout(total=patience.LOOK_TIMEOUT_S),
            trust_env=self._by_proxy,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def get(self, url: str) -> Page:
        """Ask for a page."""
        return await self._ask("GET", url)

    async def post_nothing(self, url: str) -> Page:
        """Ask a route with an empty object."""
        return await self._ask("POST", url, {})

    async def all_of(self, urls: Mapping[str, str]) -> dict[str, Page]:
        """Ask for several pages at once."""
        pages = await asyncio.gather(*map(self.get, urls.values()))
        return dict(zip(urls, pages, strict=True))

    async def _ask(self, method: str, url: str, body: Any = None) -> Page:
        if self._session is None:
            raise RuntimeError("the connections are not open")
        try:
            async with self._session.request(
                method, url, json=body, allow_redirects=False
            ) as reply:
                content = await reply.content.read(MOST_BYTES)
                while len(content) < MOST_BYTES and not reply.content.at_eof():
                    content += await reply.content.read(MOST_BYTES)
                return Page(
                    reply.status,
                    content.decode("utf-8", "replace"),
                    "html" in reply.content_type,
                    reply.headers.get("Location"),
                )
        except aiohttp.InvalidURL as error:
            raise SettingError(f"openai.base_url: {url!r} is no URL") from error
        except (
            aiohttp.ClientError,
            asyncio.TimeoutError,
            OSError,
            ValueError,
        ) as error:
            return Page(fault=fault_of(error) or f"{type(error).__name__}: {error}")


def root_of(url: str) -> str:
    """Return scheme, host and port of a URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def model_names(models: Page) -> list[str]:
    """Return the names in OpenAI's list of models."""
    listed = models.holds("data")
    rows = listed if isinstance(listed, list) else []
    return [str(row["id"]) for row in rows if isinstance(row, dict) and "id" in row]


@dataclasses.dataclass(frozen=True)
class Kind:
    """What a server looks like.

    Attributes:
        words: For people.
        server_type: The setting that fits, None where it is no inference server.
        is_vllm: Whether it is a stock vLLM.
    """

    words: str
    server_type: str | None = None
    is_vllm: bool = False


KIND_PAGES = (
    "/",
    "/version",
    "/get_model_info",
    "/bridge/is_paused",
    "/get_world_size/",
    "/v1/models",
)
"""What tells the kinds apart, below the root."""


def is_atropos_api(front: Page) -> bool:
    """Say whether a front page, "/", is the one of the Atropos API."""
    return "AtroposLib" in str(front.holds("message"))


def kind_of_server(pages: Mapping[str, Page]) -> Kind | None:
    """Say what a server is, from `KIND_PAGES`; None where nothing tells."""
    if is_atropos_api(pages["/"]):
        return Kind("the Atropos API (env.rollout_server_url)")
    if pages["/get_model_info"].holds("model_path") is not None:
        return Kind("SGLang", "sglang")
    if pages["/bridge/is_paused"].holds("paused") is not None:
        return Kind("the vLLM server of Atropos", "vllm")
    if pages["/get_world_size/"].holds("world_size") is not None:
        return Kind("the server of TRL", "trl")
    version = pages["/version"].holds("version")
    if version is not None:
        is_simulated = "simulated" in str(version)
        name = "the simulated server" if is_simulated else f"stock vLLM {version}"
        return Kind(name, "openai", is_vllm=True)
    if pages["/v1/models"].holds("data") is not None:
        return Kind("an endpoint of the OpenAI kind", "openai")
    if any(page.is_html for page in pages.values()):
        return Kind("an ordinary web page")
    return None


async def kind_at(pages: Pages, url: str) -> Kind | None:
    """Ask a server what it is; None where nothing tells."""
    root = root_of(url)
    return kind_of_server(await pages.all_of({p: root + p for p in KIND_PAGES}))


async def why_unreachable(url: str, fault: str) -> str | None:
    """Say why no server at a URL can ever be reached; None where one may come.

    Args:
        url: As the user wrote it.
        fault: What a request for a page came to.
    """
    if fault == CUT and await _speaks_tls(url):
        tls = url.replace("http://", "https://", 1)
        return f"what is at {url} speaks TLS; write {tls}"
    if fault not in NEVER_BY_WAITING:
        return None
    host = urlsplit(url).hostname or ""
    what_to_do = {
        NO_SUCH_HOST: f"look at the spelling of {host!r}, or at the network",
        NO_TLS: f"write {url.replace('https://', 'http://', 1)}",
        BAD_CERTIFICATE: "name the file of the authority that signed it in the"
        " environment variable SSL_CERT_FILE",
    }
    return f"{url} cannot be reached: {fault}; {what_to_do[fault]}"


async def _speaks_tls(url: str) -> bool:
    parts = urlsplit(url)
    if parts.scheme != "http":
        return False
    anybody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anybody.check_hostname = False
    anybody.verify_mode = ssl.CERT_NONE
    connecting = asyncio.open_connection(parts.hostname, parts.port or 80, ssl=anybody)
    try:
        _, writer = await asyncio.wait_for(connecting, patience.LOOK_TIMEOUT_S)
    except (OSError, asyncio.TimeoutError):
        return False
    writer.close()
    with contextlib.suppress(OSError, asyncio.TimeoutError):
        await asyncio.wait_for(writer.wait_closed(), patience.LOOK_TIMEOUT_S)
    return True


@dataclasses.dataclass(frozen=True)
class ServerLook:
    """A look at one server.

    Attributes:
        url: As the user wrote it.
        server_type: As the user wrote it.
        model: As the user wrote it.
        key: As the user wrote it.
        trains: Whether it is to serve a trainer.
        headers: As the user wrote them.
    """

    url: str
    server_type: str
    model: str
    key: str | None
    trains: bool
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def base(self) -> str:
        """What the client of this type puts before its route."""
        url = self.url.rstrip("/")
        is_native = self.server_type in ("vllm", "sglang")
        return url.replace("/v1", "") if is_native else url

    @property
    def route(self) -> str:
        """What the client of this type asks."""
        return self.base + ROUTES[self.server_type]

    async def check(self) -> None:
        """Look at the server.

        Raises:
            SettingError: It can never do what the settings say.
            NotThere: Nothing answers, as yet.
        """
        async with self._pages() as pages:
            first = await pages.all_of(self._first_pages())
            if all(page.status == 0 for page in first.values()):
                await self._refuse_fault(first["route"].fault or "")
            await self._check_route(pages, first)
            self._check_kind(first)

    async def why_model(self, reply: Reply) -> SettingError:
        """Return the sentence about a model that the server refuses.

        Args:
            reply: What it says.
        """
        async with self._pages() as pages:
            names = model_names(await pages.get(f"{self.url.rstrip('/')}/models"))
        refused = f"openai.model_name: {self.url} refuses {self.model!r}"
        told = f"{reply.status}: {reply.said}"
        if not names or self.model in names:
            return SettingError(f"{refused} ({told}); set a model that it has")
        close = nearest(self.model, names) or (names[0] if len(names) == 1 else None)
        if close is not None:
            return SettingError(f"{refused} ({told}); did you mean {close!r}?")
        known = ", ".join(names[:MOST_MODELS]) + ", ..." * (len(names) > MOST_MODELS)
        return SettingError(f"{refused} ({told}); it has: {known}")

    @property
    def _by_proxy(self) -> bool:
        # Of the clients only the one of openai goes through a proxy.
        return self.server_type == "openai" and bool(urllib.request.getproxies())

    def _pages(self) -> Pages:
        return Pages(self.key, self.headers, by_proxy=self._by_proxy)

    def _first_pages(self) -> dict[str, str]:
        root = root_of(self.url)
        asked = {"route": self.route, "models": f"{self.url.rstrip('/')}/models"}
        if self.server_type in ("vllm", "sglang"):
            told_apart = ("/get_model_info", "/bridge/is_paused")
            asked |= {page: root + page for page in told_apart}
        return asked

    async def _refuse_fault(self, fault: str) -> None:
        """Raise what no reply at all means."""
        sentence = await why_unreachable(self.url, fault)
        if sentence is None or self._by_proxy:
            raise NotThere(fault)
        raise SettingError(f"openai.base_url: {sentence}")

    async def _check_route(self, pages: Pages, first: Mapping[str, Page]) -> None:
        """Refuse a server that does not have our route, or wants another key."""
        route, models = first["route"], first["models"]
        refused_key = {route.status, models.status} & REFUSED_KEY
        is_doubtful = (
            refused_key or route.is_html or route.status in {404, 410} | SENT_ON
        )
        if not is_doubtful:
            return
        # Some servers do not answer GET where they answer POST.
        posted = await pages.post_nothing(self.route)
        if posted.status in REFUSED_KEY:
            secrets = (self.key, *self.headers.values())
            refusal = read_refusal(posted.status, posted.text, *secrets)
            raise SettingError(why_key(self.url, refusal))
        if posted.status in MOVED:
            raise SettingError(
                f"openai.base_url: {self.route} leads elsewhere ({posted.status}, to"
                f" {posted.location}); write the address that it leads to"
            )
        if posted.has_no_route and not await self._has_another_route(pages):
            raise await self._no_route(pages, posted)

    async def _has_another_route(self, pages: Pages) -> bool:
        """Say whether this is a stock vLLM, whose completions give token ids."""
        if self.server_type != "vllm":
            return False
        kind = await kind_at(pages, self.url)
        if kind is None or kind.server_type != "openai":
            return False
        return self.trains or kind.is_vllm

    async def _no_route(self, pages: Pages, posted: Page) -> SettingError:
        """Return why the route is not there, and what to set."""
        kind = await kind_at(pages, self.url)
        if kind is None or kind.server_type is None:
            return self._no_server(kind, posted)
        suggested = await self._where_it_is(pages)
        if suggested is not None:
            return SettingError(
                f"openai.base_url: {self.route} is not there ({posted.status});"
                f" write {suggested}"
            )
        return SettingError(
            f"openai.server_type: {self.server_type!r} needs"
            f" {ROUTES[self.server_type]}, which {self.base} does not have"
            f" ({posted.status}): it looks like {self._advice(kind)}"
        )

    def _no_server(self, kind: Kind | None, posted: Page) -> SettingError:
        if kind is None:
            what = (
                f"has no {ROUTES[self.server_type]} ({posted.status}), and no page of"
            )
            return SettingError(
                f"openai.base_url: {self.url} {what} an inference server; set the"
                " address of one"
            )
        return SettingError(
            f"openai.base_url: at {self.url} is {kind.words}, no inference server; set"
            " the address of one"
        )

    async def _where_it_is(self, pages: Pages) -> str | None:
        """Return the URL to write, where the server has our route at another place."""
        for path in ("/v1", ""):
            other = dataclasses.replace(self, url=root_of(self.url) + path)
            page = await pages.get(other.route)
            if other.route == self.route or page.status in {0, 404} | SENT_ON:
                continue
            if not (await pages.post_nothing(other.route)).has_no_route:
                return other.url
        return None

    def _advice(self, kind: Kind) -> str:
        fits = f"use --openai.server_type {kind.server_type}"
        return f"{kind.words}; {fits}"

    async def words(self) -> str:
        """Return what the server looks like, for people."""
        async with self._pages() as pages:
            kind = await kind_at(pages, self.url)
        return "a server" if kind is None else kind.words

    async def why_no_tokens(self, error: NoRouteError) -> SettingError:
        """Return the sentence about a server that gives no trainer what it needs.

        Args:
            error: What each of its routes came to.
        """
        words = await self.words()
        if error.missing is None and isinstance(error.nearest.error, UnfitRouteError):
            return SettingError(
                f"{error.field}: {self.url} ({words}) cannot train:"
                f" {error.nearest.route.path}: {error.nearest.reason}"
            )
        missing = error.missing or TOKEN_IDS
        return SettingError(
            f"openai.base_url: {self.url} ({words}) returns no {missing} ({error});"
            f" {SERVE_NEEDS}; `process` and `evaluate` need none"
        )

    def _check_kind(self, first: Mapping[str, Page]) -> None:
        """Refuse the one of two servers that both have `/generate`."""
        if self.server_type not in ("vllm", "sglang"):
            return
        is_sglang = first["/get_model_info"].holds("model_path") is not None
        is_atropos = first["/bridge/is_paused"].holds("paused") is not None
        found = (
            Kind("SGLang", "sglang")
            if is_sglang
            else Kind("the vLLM server of Atropos", "vllm")
            if is_atropos
            else None
        )
        if found is not None and found.server_type != self.server_type:
            raise SettingError(
                f"openai.server_type: {self.url} is no server of type"
                f" {self.server_type!r}: it looks like {self._advice(found)}"
            )
