import { createServer, type IncomingMessage, type OutgoingHttpHeaders, Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { Server as TlsServer } from "node:tls"
import { clientOf } from "@tidegate/model/ClientAddress"
import { TrustedProxies } from "@tidegate/model/TrustedProxies"
import { Arriving, FramedMessage } from "./FramedMessage.ts"
import { type ConnectionSource, handedOver } from "./HandedOver.ts"
import { takingSoon } from "./Listeners.ts"
import { foreignHeaders } from "./ForeignAnswer.ts"
import { bytesBeingParsed } from "./NodeInternals.ts"
import { type Refusal, refusal, refuseOnWire, refuseRequest } from "./Refusal.ts"

/** Limits above which a server refuses clients. */
export interface Capacity {
  /**
   * Connections of the process: an idle one costs about 15 KB, and senders keep theirs open. One client address may have half of them. So one
   * client cannot block all others, and an untrusted reverse proxy, which has one address for all its senders, still works.
   */
  readonly connections: number
  /** Requests of one connection that wait for the answers to earlier ones. Clients that pipeline send about a dozen ahead. */
  readonly waiting: number
}

const usual: Capacity = { connections: 8_192, waiting: 256 }

export interface WireOptions {
  readonly capacity?: Capacity
  /** Proxies whose connections are not counted as one client's. Default: none. */
  readonly proxies?: TrustedProxies
  /** Does the handshakes of the connections with its certificate, and does not listen itself. Default: the server does not use TLS. */
  readonly tls?: TlsServer | null
  /** The process that listens for this one. Default: the server listens itself. */
  readonly connections?: ConnectionSource | null
}

const nobody = new TrustedProxies([])

/** Header lines of one request; common web servers allow 100. 32 KiB could hold 8,000, and each is a value that other code processes. */
const maxHeaders = 256
const largestHeaders = 32 * 1024

const sweepEveryMs = 1_000
/** Milliseconds that a client may take to close its side after an upgrade was refused. */
const refusedPatienceMs = 2_000

const limits = {
  // Longer than a load balancer keeps an idle connection, so that it never uses one that is being closed.
  keepAliveTimeout: 65_000,
  headersTimeout: 20_000,
  // 10 MiB in this time are 87 KiB per second.
  requestTimeout: 120_000,
  connectionsCheckingInterval: 5_000,
  maxHeaderSize: largestHeaders,
  // Checked by `faultOf` instead: Node's own answer has no body.
  requireHostHeader: false
}

/**
 * The ingress handler: it gets the requests whose path begins with one of `prefixes`. Upgrades are ignored for them, and their answers count as
 * another party's content (`foreignHeaders`).
 */
export interface IngressRoute {
  readonly prefixes: ReadonlyArray<string>
  /**
   * Host (with a port unless it is the scheme's default) that is reserved for ingress. Requests with another `Host` do not reach ingress, and
   * requests with this one reach nothing else. So browsers see two separate origins. Null: all hosts are shared.
   */
  readonly host: string | null
  readonly handle: (request: FramedMessage, response: ServerResponse) => void
}

/**
 * An HTTP server that limits untrusted input before it is processed: connections, headers, the framing of bodies and their
 * pace. Requests that are not HTTP/1 or are ambiguous get an error in the contract's shape and are not passed on. Fails
 * closed: the connection ends, because later bytes on it may not start where they seem to.
 *
 * Requests that are not for ingress go to the server's own listeners.
 */
export const wireServer = (
  ingress: IngressRoute | null,
  { capacity = usual, proxies = nobody, tls = null, connections: source = null }: WireOptions = {}
): Server => {
  const isIngress = (path: string): boolean =>
    ingress !== null && ingress.prefixes.some((prefix) => path.startsWith(prefix))
  /** Whether a request names the wrong host: the ingress host for another path, or another host for an ingress path. */
  const ownHost = ingress === null || ingress.host === null ? null : hostOf(ingress.host)
  const isElsewhere = ({ headers }: IncomingMessage, isIts: boolean): boolean =>
    ownHost !== null && isIts !== (hostOf(headers.host) === ownHost)
  const arriving = new Arriving()
  const waiting = new WeakMap<Socket, number>()
  const connections = new Map<string, number>()

  /**
   * After the server stops listening, an answer closes its connection, unless pipelined requests wait on it. Otherwise a busy client would
   * delay the shutdown until all connections are cut, in the middle of a request.
   */
  class Answer extends ServerResponse<FramedMessage> {
    /** Whether ingress answers. */
    isForeign = false

    override writeHead(status: number, ...more: ReadonlyArray<unknown>): this {
      const { socket } = this.req
      if (!server.listening && (waiting.get(socket) ?? 0) === 0) this.shouldKeepAlive = false
      const headers = more as [OutgoingHttpHeaders?]
      return this.isForeign ? super.writeHead(status, foreignHeaders(headers[0])) : super.writeHead(status, ...headers)
    }
  }

  const server: Server = createServer({
    ...limits,
    IncomingMessage: FramedMessage,
    ServerResponse: Answer,
    // Some HTTP clients offer h2c with every request. For senders the offer is ignored, and the request is accepted.
    shouldUpgradeCallback: ({ url = "" }: IncomingMessage): boolean => !isIngress(pathOf(url))
  })
  let openInAll = 0
  // Node drops headers above the limit without an error, including trailers; one more than allowed shows that there were too many.
  server.maxHeadersCount = maxHeaders + 1
  server.on("clientError", onClientError)

  /** Whether one more connection may be open. One in its handshake is counted too. */
  const take = (socket: Socket): boolean => {
    if (openInAll >= capacity.connections) {
      socket.destroy()
      return false
    }
    openInAll++
    socket.once("close", () => openInAll--)
    // Clients behind a trusted proxy are counted by their requests.
    if (proxies.trusts(socket.remoteAddress)) return true
    const client = clientOf(socket.remoteAddress ?? "")
    const open = (connections.get(client) ?? 0) + 1
    if (open > capacity.connections / 2) {
      if (tls === null) refuseOnWire(socket, tooManyConnections)
      // Before the handshake there are no words that the client could read.
      else socket.destroy()
      return false
    }
    connections.set(client, open)
    socket.once("close", () => {
      const left = connections.get(client)! - 1
      if (left === 0) connections.delete(client)
      else connections.set(client, left)
    })
    return true
  }
  if (tls === null) server.on("connection", take)
  else tls.on("secureConnection", (socket) => void emit("connection", socket))

  const sweep = setInterval(() => arriving.sweep(performance.now()), sweepEveryMs).unref()
  server.once("close", () => clearInterval(sweep))

  /** Whether a request may wait for earlier ones of its connection. */
  const mayWait = (socket: Socket, response: ServerResponse): boolean => {
    if (socket.destroyed) return false
    const ahead = waiting.get(socket) ?? 0
    if (ahead >= capacity.waiting) {
      socket.destroy()
      return false
    }
    waiting.set(socket, ahead + 1)
    response.once("close", () => waiting.set(socket, waiting.get(socket)! - 1))
    return true
  }

  /** Whether a request is valid and may be passed on. */
  const admit = (request: FramedMessage, response: ServerResponse, expects: boolean): boolean => {
    // A response without a socket waits for earlier responses.
    if (response.socket === null && !mayWait(request.socket, response)) return false
    if (hasBody(request)) arriving.begin(request)
    const fault = faultOf(request) ?? (expects ? unknownExpectation : null)
    if (fault === null) return true
    request.discard(response)
    refuseRequest(response, fault)
    return false
  }

  const emit = server.emit.bind(server)
  server.emit = (event: string, ...args: ReadonlyArray<unknown>): boolean => {
    switch (event) {
      case "connection":
        if (tls === null) break
        if (!take(args[0] as Socket)) return true
        // A client that leaves during its handshake would otherwise keep its place until the handshake's deadline.
        ;(args[0] as Socket).allowHalfOpen = false
        tls.emit("connection", args[0])
        return true
      case "request":
      case "checkContinue":
      case "checkExpectation": {
        const request = args[0] as FramedMessage
        const response = args[1] as Answer
        if (!admit(request, response, event === "checkExpectation")) return true
        request.url = pathOf(request.url!)
        const isIts = isIngress(request.url)
        if (isElsewhere(request, isIts)) {
          request.discard(response)
          refuseRequest(response, isIts ? wrongHostForSources : wrongHostForApi)
          return true
        }
        if (!isIts) return emit(event, ...args)
        response.isForeign = true
        ingress!.handle(request, response)
        return true
      }
      case "upgrade": {
        const request = args[0] as FramedMessage
        const fault = faultOf(request) ?? (isElsewhere(request, false) ? wrongHostForApi : null)
        if (fault !== null) {
          refuseOnWire(request.socket, fault)
          return true
        }
        if (hasBody(request)) arriving.begin(request)
        // After an upgrade Node's timers no longer watch the socket: a client that does not close it is cut off here.
        const { socket } = request
        socket.once("finish", () => void setTimeout(() => socket.destroy(), refusedPatienceMs).unref())
      }
    }
    return emit(event, ...args)
  }
  // Node emits this event only if it has a listener.
  server.on("checkExpectation", () => {})
  return source === null ? takingSoon(server) : handedOver(server, source)
}

/** The request target without the origin that it may begin with (RFC 9112, 3.2.2). */
const pathOf = (url: string): string => (url.startsWith("/") ? url : url.replace(/^https?:\/\/[^/?]*/i, "") || "/")

/** A host in lower case, without a default port. Both ports are removed, because only the TLS proxy knows the scheme. */
const hostOf = (host: string | undefined): string => (host ?? "").toLowerCase().replace(/:(?:80|443)$/, "")

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0"

const soon = { "retry-after": "5" }
const tooManyConnections = refusal("QUEUE_UNAVAILABLE", "your address has too many connections open", soon)
const notHttp1 = refusal("VALIDATION_ERROR", "only HTTP/1.1 and HTTP/1.0 are spoken here")
const tooManyHeaders = refusal("HEADERS_TOO_LARGE", `the request has more than ${maxHeaders} headers`)
const headersTooLarge = refusal(
  "HEADERS_TOO_LARGE",
  `the request line and headers are larger than ${largestHeaders} bytes together`
)
const extensionsTooLarge = refusal("PAYLOAD_TOO_LARGE", "the extensions of the body's chunks are too large")
const timeout = refusal("REQUEST_TIMEOUT", "the request did not come in time")
const wrongHostForSources = refusal("NOT_FOUND", "requests to sources are taken by the host of their URLs alone")
const wrongHostForApi = refusal("NOT_FOUND", "this host takes requests to sources alone")
const unknownExpectation = refusal("EXPECTATION_FAILED", "no expectation but 100-continue is met here")
const noHost = refusal("VALIDATION_ERROR", "the request has no Host header")
const twoHosts = refusal("VALIDATION_ERROR", "the request has more than one Host header")
const badHost = refusal("VALIDATION_ERROR", "the Host header is none")

/** Characters of a host and port (RFC 9112, 3.2, and RFC 3986, 3.2.2). */
const hostForm = /^[\w.~!$&'()*+,;=%:[\]-]*$/

/** Why a request is invalid, whatever its target is; null if it is valid. */
const faultOf = (message: IncomingMessage): Refusal | null => {
  const { httpVersionMajor: major, httpVersionMinor: minor, rawHeaders } = message
  if (major !== 1 || minor > 1 || (minor === 0 && isAnotherProtocol(message.socket))) return notHttp1
  if (rawHeaders.length > 2 * maxHeaders) return tooManyHeaders
  let host: string | null = null
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    if (name.length !== 4 || name.toLowerCase() !== "host") continue
    if (host !== null) return twoHosts
    host = rawHeaders[i + 1]!
  }
  if (host === null) return minor === 1 ? noHost : null
  return hostForm.test(host) ? null : badHost
}

/**
 * Node's parser accepts RTSP/1.0 and ICE/1.0 as HTTP/1.0 without an error, so the bytes are checked. If they came in several reads, such
 * a request passes as HTTP/1.0, which does no harm.
 */
const isAnotherProtocol = (socket: Socket): boolean => {
  const bytes = bytesBeingParsed(socket)
  if (bytes === null) return false
  const end = bytes.indexOf("\n")
  return end > 0 && /^[A-Z_]+ \S+ (?:RTSP|ICE)\/1\.\d\r?$/.test(bytes.toString("latin1", 0, end))
}

/** Handles connection errors from Node's server: invalid HTTP, a timeout, or a disconnected client. */
const onClientError = (error: Error & { readonly code?: string; readonly reason?: string }, socket: Socket): void => {
  const { code = "", reason } = error
  if (code === "HPE_HEADER_OVERFLOW") refuseOnWire(socket, headersTooLarge)
  else if (code === "HPE_CHUNK_EXTENSIONS_OVERFLOW") refuseOnWire(socket, extensionsTooLarge)
  else if (code === "ERR_HTTP_REQUEST_TIMEOUT") refuseOnWire(socket, timeout)
  else if (code.startsWith("HPE_")) {
    refuseOnWire(socket, refusal("VALIDATION_ERROR", `the request is not HTTP: ${reason ?? "malformed"}`))
  } else socket.destroy()
}
