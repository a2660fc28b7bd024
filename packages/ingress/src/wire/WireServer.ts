import { createServer, type IncomingMessage, type OutgoingHttpHeaders, Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { clientOf } from "@tidegate/model/ClientAddress"
import { TrustedProxies } from "@tidegate/model/TrustedProxies"
import { Arriving, FramedMessage } from "./FramedMessage.ts"
import { takingSoon } from "./Listeners.ts"
import { foreignHeaders } from "./ForeignAnswer.ts"
import { bytesBeingParsed } from "./NodeInternals.ts"
import { type Refusal, refusal, refuseOnWire, refuseRequest } from "./Refusal.ts"

/** How much a server takes on before it turns clients away. */
export interface Capacity {
  /**
   * Connections of the process: an idle one costs some 15 KB, and senders keep theirs open. Half of them may be one client
   * address's, so that nobody shuts everybody out and a reverse proxy that is not trusted, whose address all senders have, still gets by.
   */
  readonly connections: number
  /** Requests that wait on one connection for the answers to earlier ones. Clients that pipeline at all send a dozen ahead. */
  readonly waiting: number
}

const usual: Capacity = { connections: 8_192, waiting: 256 }

export interface WireOptions {
  readonly capacity?: Capacity
  /** Whose connections are not counted as one client's. Default: nobody's. */
  readonly proxies?: TrustedProxies
}

const nobody = new TrustedProxies([])

/** Header lines of one request; web servers in use take 100. 32 KiB could be 8,000, and each is a value to whoever looks at it. */
const maxHeaders = 256
const largestHeaders = 32 * 1024

const sweepEveryMs = 1_000
/** A client that asked for another protocol and was refused may take so long to close its half (ms). */
const refusedPatienceMs = 2_000

const limits = {
  // Longer than a load balancer keeps an idle connection, so that it never sends on one that closes.
  keepAliveTimeout: 65_000,
  headersTimeout: 20_000,
  // 10 MiB in that time are 87 KiB a second.
  requestTimeout: 120_000,
  connectionsCheckingInterval: 5_000,
  maxHeaderSize: largestHeaders,
  // Looked for here: Node's own answer has no body.
  requireHostHeader: false
}

/**
 * Who takes the requests whose path begins with `prefix`. They get no other protocol, whatever they offer, and what they are answered is
 * held for another party's (`foreignHeaders`).
 */
export interface Door {
  readonly prefix: string
  /**
   * The host, and port where it is not the scheme's, that the door has for itself: requests with another `Host` are not for the door, and
   * requests with this one for nobody else. So a browser has two origins for the two. Null: they share what hosts there are.
   */
  readonly host: string | null
  readonly handle: (request: FramedMessage, response: ServerResponse) => void
}

/**
 * An HTTP server that bounds what strangers send before anybody looks at it: connections, headers, how bodies are framed and
 * how fast they come. What is not HTTP/1, or not unambiguous, is answered with an error in the contract's shape, and seen by
 * nobody. Fails closed: the connection ends, because what follows on it cannot be trusted to begin where it seems to.
 *
 * What is not for the door is for the server's listeners.
 */
export const wireServer = (door: Door | null, { capacity = usual, proxies = nobody }: WireOptions = {}): Server => {
  const isForDoor = (path: string): boolean => door !== null && path.startsWith(door.prefix)
  /** Whether a request names the host of the other one: of the door, or of whoever else listens. */
  const ownHost = door === null || door.host === null ? null : hostOf(door.host)
  const isElsewhere = ({ headers }: IncomingMessage, isIts: boolean): boolean =>
    ownHost !== null && isIts !== (hostOf(headers.host) === ownHost)
  const arriving = new Arriving()
  const waiting = new WeakMap<Socket, number>()
  const connections = new Map<string, number>()

  /**
   * Once nothing is listened to any more, an answer ends its connection, unless others are to follow on it. Who kept one busy would hold the
   * process until all that is left is cut off, in the middle of a request.
   */
  class Answer extends ServerResponse<FramedMessage> {
    /** Whether the door answers. */
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
    // Some HTTP clients offer h2c with every request. A sender's offer is not taken, its request is.
    shouldUpgradeCallback: ({ url = "" }: IncomingMessage): boolean => !isForDoor(pathOf(url))
  })
  let openInAll = 0
  // Node drops what is above, trailers too, in silence; one more than may be tells that there were too many.
  server.maxHeadersCount = maxHeaders + 1
  server.on("clientError", onClientError)

  server.on("connection", (socket) => {
    if (openInAll >= capacity.connections) return void socket.destroy()
    openInAll++
    socket.once("close", () => openInAll--)
    // Whoever is behind it is counted by what they send.
    if (proxies.trusts(socket.remoteAddress)) return
    const client = clientOf(socket.remoteAddress ?? "")
    const open = (connections.get(client) ?? 0) + 1
    if (open > capacity.connections / 2) return refuseOnWire(socket, tooManyConnections)
    connections.set(client, open)
    socket.once("close", () => {
      const left = connections.get(client)! - 1
      if (left === 0) connections.delete(client)
      else connections.set(client, left)
    })
  })

  const sweep = setInterval(() => arriving.sweep(performance.now()), sweepEveryMs).unref()
  server.once("close", () => clearInterval(sweep))

  /** Whether a request that has to wait for earlier ones of its connection may. */
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

  /** Whether a request is one that somebody may see. */
  const admit = (request: FramedMessage, response: ServerResponse, expects: boolean): boolean => {
    // Without a socket, an answer waits for its turn.
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
      case "request":
      case "checkContinue":
      case "checkExpectation": {
        const request = args[0] as FramedMessage
        const response = args[1] as Answer
        if (!admit(request, response, event === "checkExpectation")) return true
        request.url = pathOf(request.url!)
        const isIts = isForDoor(request.url)
        if (isElsewhere(request, isIts)) {
          request.discard(response)
          refuseRequest(response, isIts ? notTheDoors : onlyTheDoors)
          return true
        }
        if (!isIts) return emit(event, ...args)
        response.isForeign = true
        door!.handle(request, response)
        return true
      }
      case "upgrade": {
        const request = args[0] as FramedMessage
        const fault = faultOf(request) ?? (isElsewhere(request, false) ? onlyTheDoors : null)
        if (fault !== null) {
          refuseOnWire(request.socket, fault)
          return true
        }
        if (hasBody(request)) arriving.begin(request)
        // Answered without becoming a stream, its socket has no timer of Node's any more: who does not close it is cut off.
        const { socket } = request
        socket.once("finish", () => void setTimeout(() => socket.destroy(), refusedPatienceMs).unref())
      }
    }
    return emit(event, ...args)
  }
  // Node asks whether anybody listens before it emits.
  server.on("checkExpectation", () => {})
  return takingSoon(server)
}

/** A request's target without the origin that it may begin with (RFC 9112, 3.2.2). */
const pathOf = (url: string): string => (url.startsWith("/") ? url : url.replace(/^https?:\/\/[^/?]*/i, "") || "/")

/** A host as a URL has it: in lower case, and without the port that its scheme has anyway. Which of the two it is, whoever ends TLS knows. */
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
const notTheDoors = refusal("NOT_FOUND", "requests to sources are taken by the host of their URLs alone")
const onlyTheDoors = refusal("NOT_FOUND", "this host takes requests to sources alone")
const unknownExpectation = refusal("EXPECTATION_FAILED", "no expectation but 100-continue is met here")
const noHost = refusal("VALIDATION_ERROR", "the request has no Host header")
const twoHosts = refusal("VALIDATION_ERROR", "the request has more than one Host header")
const badHost = refusal("VALIDATION_ERROR", "the Host header is none")

/** What a host and port may be made of (RFC 9112, 3.2, and RFC 3986, 3.2.2). */
const hostForm = /^[\w.~!$&'()*+,;=%:[\]-]*$/

/** What is wrong with a request whoever it is for; null: nothing. */
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
 * Node's parser takes RTSP/1.0 and ICE/1.0 for HTTP/1.0 and tells nobody, so the bytes are looked at. Where they came apart
 * such a request passes for HTTP/1.0, which does no harm.
 */
const isAnotherProtocol = (socket: Socket): boolean => {
  const bytes = bytesBeingParsed(socket)
  if (bytes === null) return false
  const end = bytes.indexOf("\n")
  return end > 0 && /^[A-Z_]+ \S+ (?:RTSP|ICE)\/1\.\d\r?$/.test(bytes.toString("latin1", 0, end))
}

/** What Node's server tells of a connection: bytes that are no HTTP, a time that is over, or that the client is gone. */
const onClientError = (error: Error & { readonly code?: string; readonly reason?: string }, socket: Socket): void => {
  const { code = "", reason } = error
  if (code === "HPE_HEADER_OVERFLOW") refuseOnWire(socket, headersTooLarge)
  else if (code === "HPE_CHUNK_EXTENSIONS_OVERFLOW") refuseOnWire(socket, extensionsTooLarge)
  else if (code === "ERR_HTTP_REQUEST_TIMEOUT") refuseOnWire(socket, timeout)
  else if (code.startsWith("HPE_")) {
    refuseOnWire(socket, refusal("VALIDATION_ERROR", `the request is not HTTP: ${reason ?? "malformed"}`))
  } else socket.destroy()
}
