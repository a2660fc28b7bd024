import type { seal } from "./Seal.ts"
import type { sources } from "./Sources.ts"

/**
 * What the guest may ask of its host. It sends texts and receives a text: `=` and the answer, or `!` and the error. The host never
 * throws, because an error that crosses the boundary brings the host's stack along.
 */
export type Ask = (operation: string, ...texts: ReadonlyArray<string>) => string

/**
 * How a call ended, as texts, so that no object of the code crosses the boundary:
 * `["ok", members as JSON, body as JSON]`, each "" for the original, or `[error code, name, message, line or ""]`.
 */
export type Outcome = ReadonlyArray<string>

/** `call` identifies the call; the host ignores questions from any other call. */
export type Run = (code: Code, call: string, input: string, body: string) => Outcome

/**
 * The team's compiled code. In a fresh context it is the function that runs the code. In a sealed one it takes the globals of the call and returns
 * that function.
 */
export type Code = (...globals: ReadonlyArray<unknown>) => unknown

/**
 * The environment of the code. **Its source text is evaluated inside the isolate**, once in each context and before the team's code; it
 * refers to nothing outside of itself and is plain JavaScript once its types are stripped.
 *
 * In a fresh context the code can break everything for itself (it shares the guest's prototypes) but for nobody else: the host treats
 * all results as untrusted text, and the context is dropped after the call. In a sealed context the code can change nothing but what
 * belongs to its own call.
 */
export const guest = (
  host: Ask,
  limits: {
    readonly logLines: number
    readonly logLineBytes: number
    readonly outputBytes: number
    readonly membersLength: number
  },
  makeSources: typeof sources | null,
  makeSeal: typeof seal | null
): Run => {
  "use strict"
  const { parse, stringify } = JSON
  const { apply, defineProperty, deleteProperty } = Reflect
  const { isArray } = Array
  const text = String
  const ask = (...texts: [operation: string, ...ReadonlyArray<string>]): string => {
    const answer: string = apply(host, undefined, texts)
    if (answer[0] === "!") throw new TypeError(answer.slice(1))
    return answer.slice(1)
  }
  const world: Record<string, unknown> = globalThis
  /** Cuts a text for display. One character more than the limit is kept, so that the host sees that it has to cut. */
  const shown = (value: string): string => value.slice(0, limits.logLineBytes + 1)

  const expose = (name: string, value: unknown): void => {
    defineProperty(globalThis, name, { value, writable: true, enumerable: false, configurable: true })
  }

  // No code from strings: all four function constructors are replaced by one that refuses, and so is eval.
  const refuse = (): never => {
    throw new EvalError("code generation from strings is not allowed")
  }
  const NoFunction = function Function(): void {
    refuse()
  }
  const kinds = [function () {}, async function () {}, function* () {}, async function* () {}]
  for (const kind of kinds) {
    defineProperty(Object.getPrototypeOf(kind), "constructor", {
      value: NoFunction,
      writable: false,
      configurable: false
    })
  }
  defineProperty(NoFunction, "prototype", { value: Function.prototype })
  expose("Function", NoFunction)
  expose("eval", refuse)
  const withheld = ["WebAssembly", "SharedArrayBuffer", "Atomics", "FinalizationRegistry", "WeakRef"]
  for (const name of withheld) deleteProperty(world, name)

  const show = (value: unknown): string => {
    try {
      if (typeof value === "string") return value
      if (typeof value === "bigint") return `${value}n`
      if (typeof value !== "object" || value === null) return text(value)
      if (value instanceof Error) return `${value.name}: ${value.message}`
      return stringify(value) ?? text(value)
    } catch {
      return "[unprintable]"
    }
  }

  const consoleOf = (call: string): unknown => {
    let lines = 0
    const logger =
      (type: string) =>
      (...values: ReadonlyArray<unknown>): void => {
        // The host learns that there were more lines than it keeps, not how many.
        if (lines > limits.logLines) return
        lines++
        let line = ""
        for (let i = 0; i < values.length; i++) line += i === 0 ? show(values[i]) : ` ${show(values[i])}`
        ask("log", call, type, shown(line))
      }
    const log = logger("log")
    return {
      debug: logger("debug"),
      trace: logger("debug"),
      log,
      dir: log,
      table: log,
      info: logger("info"),
      warn: logger("warn"),
      error: logger("error")
    }
  }

  const base64Of = (bytes: unknown): string => {
    if (ArrayBuffer.isView(bytes)) {
      return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength).toBase64()
    }
    if (bytes instanceof ArrayBuffer) return new Uint8Array(bytes).toBase64()
    throw new TypeError("neither a string nor bytes")
  }

  expose("atob", (data: unknown): string => ask("atob", text(data)))
  expose("btoa", (data: unknown): string => ask("btoa", text(data)))
  expose(
    "TextEncoder",
    class TextEncoder {
      readonly encoding = "utf-8"
      encode(input: unknown = ""): Uint8Array {
        return Uint8Array.fromBase64(ask("encode", text(input)))
      }
    }
  )
  expose(
    "TextDecoder",
    class TextDecoder {
      readonly encoding: string
      readonly fatal: boolean
      readonly ignoreBOM: boolean
      constructor(label: unknown = "utf-8", options: { readonly fatal?: unknown; readonly ignoreBOM?: unknown } = {}) {
        this.encoding = ask("encoding", text(label))
        this.fatal = Boolean(options.fatal)
        this.ignoreBOM = Boolean(options.ignoreBOM)
      }
      decode(input?: unknown): string {
        if (input === undefined) return ""
        return ask("decode", this.encoding, this.fatal ? "1" : "", this.ignoreBOM ? "1" : "", base64Of(input))
      }
    }
  )

  /** Two texts for the host: the encoding of `data`, and `data` in it. */
  const carried = (data: unknown): [string, string] => {
    if (typeof data === "string") return ["utf8", data]
    return ["base64", base64Of(data)]
  }
  expose("crypto", {
    hash: (algorithm: unknown, data: unknown, encoding: unknown = "hex"): string =>
      ask("hash", text(algorithm), text(encoding), ...carried(data)),
    hmac: (algorithm: unknown, key: unknown, data: unknown, encoding: unknown = "hex"): string =>
      ask("hmac", text(algorithm), text(encoding), ...carried(key), ...carried(data)),
    timingSafeEqual: (left: unknown, right: unknown): boolean =>
      ask("equal", ...carried(left), ...carried(right)) === "1",
    randomUUID: (): string => ask("uuid")
  })

  type Pair = [string, string]
  let reload!: (params: URLSearchParams, query: string) => void
  let follow!: (params: URLSearchParams, onChange: (query: string) => void) => void
  class URLSearchParams {
    #pairs: Array<Pair>
    #onChange: ((query: string) => void) | undefined
    static {
      reload = (params, query) => {
        params.#pairs = parse(ask("query.parse", query))
      }
      follow = (params, onChange) => {
        params.#onChange = onChange
      }
    }
    constructor(init: unknown = "") {
      if (typeof init !== "object" || init === null) {
        this.#pairs = parse(ask("query.parse", text(init)))
      } else if (Symbol.iterator in init) {
        this.#pairs = Array.from(init as Iterable<Iterable<unknown>>, (pair) => {
          const [name, value, ...more] = Array.from(pair)
          if (value === undefined || more.length > 0) throw new TypeError("each pair must be a name and a value")
          return [text(name), text(value)]
        })
      } else {
        this.#pairs = Object.entries(init).map(([name, value]) => [name, text(value)])
      }
    }
    #changed(): void {
      this.#onChange?.(this.toString())
    }
    get size(): number {
      return this.#pairs.length
    }
    append(name: unknown, value: unknown): void {
      this.#pairs.push([text(name), text(value)])
      this.#changed()
    }
    delete(name: unknown, value?: unknown): void {
      this.#pairs = this.#pairs.filter(
        (pair) => pair[0] !== text(name) || (value !== undefined && pair[1] !== text(value))
      )
      this.#changed()
    }
    get(name: unknown): string | null {
      return this.#pairs.find((pair) => pair[0] === text(name))?.[1] ?? null
    }
    getAll(name: unknown): Array<string> {
      return this.#pairs.filter((pair) => pair[0] === text(name)).map((pair) => pair[1])
    }
    has(name: unknown, value?: unknown): boolean {
      return this.#pairs.some((pair) => pair[0] === text(name) && (value === undefined || pair[1] === text(value)))
    }
    set(name: unknown, value: unknown): void {
      const wanted = text(name)
      const found = this.#pairs.find((pair) => pair[0] === wanted)
      if (found === undefined) {
        this.#pairs.push([wanted, text(value)])
      } else {
        found[1] = text(value)
        this.#pairs = this.#pairs.filter((pair) => pair === found || pair[0] !== wanted)
      }
      this.#changed()
    }
    sort(): void {
      this.#pairs.sort((left, right) => (left[0] < right[0] ? -1 : left[0] > right[0] ? 1 : 0))
      this.#changed()
    }
    forEach(visit: (value: string, name: string, params: URLSearchParams) => void): void {
      for (const [name, value] of this) visit(value, name, this)
    }
    *entries(): Generator<Pair> {
      for (let i = 0; i < this.#pairs.length; i++) {
        const pair = this.#pairs[i]
        if (pair !== undefined) yield [pair[0], pair[1]]
      }
    }
    *keys(): Generator<string> {
      for (const [name] of this) yield name
    }
    *values(): Generator<string> {
      for (const [, value] of this) yield value
    }
    [Symbol.iterator](): Generator<Pair> {
      return this.entries()
    }
    toString(): string {
      return ask("query.format", stringify(this.#pairs))
    }
  }

  let read!: (url: URL, part: string) => string
  let write!: (url: URL, part: string, value: string) => void
  class URL {
    #href: string
    #params: URLSearchParams | undefined
    static {
      read = (url, part) => ask("url.get", url.#href, part)
      write = (url, part, value) => {
        url.#href = ask("url.set", url.#href, part, value)
        if (url.#params !== undefined) reload(url.#params, read(url, "search"))
      }
    }
    constructor(url: unknown, base?: unknown) {
      this.#href = base === undefined ? ask("url", text(url)) : ask("url", text(url), text(base))
    }
    static canParse(url: unknown, base?: unknown): boolean {
      return URL.parse(url, base) !== null
    }
    static parse(url: unknown, base?: unknown): URL | null {
      try {
        return new URL(url, base)
      } catch {
        return null
      }
    }
    get origin(): string {
      return read(this, "origin")
    }
    get searchParams(): URLSearchParams {
      if (this.#params === undefined) {
        this.#params = new URLSearchParams(read(this, "search"))
        follow(this.#params, (query) => {
          this.#href = ask("url.set", this.#href, "search", query)
        })
      }
      return this.#params
    }
    toString(): string {
      return this.#href
    }
    toJSON(): string {
      return this.#href
    }
  }
  const parts = ["href", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash"]
  for (const part of parts) {
    defineProperty(URL.prototype, part, {
      get(this: URL) {
        return read(this, part)
      },
      set(this: URL, value: unknown) {
        write(this, part, text(value))
      },
      enumerable: true,
      configurable: true
    })
  }
  expose("URL", URL)
  expose("URLSearchParams", URLSearchParams)

  /** The first line of the team's code in the stack, or "". */
  const lineOf = (stack: string): string => {
    const at = stack.indexOf("transformation.js:")
    if (at < 0) return ""
    let line = ""
    for (let i = at + 18; i < at + 26; i++) {
      const digit = stack[i]
      if (digit === undefined || digit < "0" || digit > "9") break
      line += digit
    }
    return line
  }

  const failure = (code: string, error: unknown): Outcome => {
    let name = "Error"
    let message = ""
    let line = ""
    try {
      if (typeof error === "object" && error !== null) {
        const { name: itsName, message: itsMessage, stack } = error as Record<string, unknown>
        name = typeof itsName === "string" ? itsName : name
        message = typeof itsMessage === "string" ? itsMessage : show(error)
        line = typeof stack === "string" ? lineOf(stack) : ""
      } else {
        message = show(error)
      }
    } catch {
      message = "the error that was thrown cannot be read"
    }
    return [code, shown(name), shown(message), line]
  }
  const invalid = (message: string): Outcome => ["INVALID_OUTPUT", "TypeError", message, ""]

  const settle = (result: unknown, before: { readonly members: string; readonly body: string }): Outcome => {
    if (result === undefined) return invalid("the handler returned nothing: end it with `return request`")
    if (typeof result !== "object" || result === null || isArray(result)) {
      return invalid("the handler did not return a request object")
    }
    if (typeof (result as { readonly then?: unknown }).then === "function") {
      return ["ASYNC_NOT_SUPPORTED", "TypeError", "the handler returned a promise; handlers are synchronous", ""]
    }
    const { headers, body, query, parsed_query, path, method } = result as Record<string, unknown>
    const bodyText = body === undefined ? "" : stringify(body)
    if (typeof bodyText !== "string") return invalid("the body is not a JSON value")
    const members = stringify({ headers, query, parsed_query, path, method })
    if (typeof members !== "string") return invalid("the returned request is not a JSON value")
    if (bodyText.length + members.length > limits.outputBytes) return ["OUTPUT_TOO_LARGE", "RangeError", "", ""]
    if (members.length > limits.membersLength) return invalid("headers, query and path are too long")
    return ["ok", members === before.members ? "" : members, bodyText === before.body ? "" : bodyText]
  }

  /** A body as it was received: its text, if it is not JSON. */
  const receivedBody = (body: string): unknown => {
    try {
      return parse(body)
    } catch {
      return body
    }
  }

  // V8's own console, whose output nobody reads.
  deleteProperty(world, "console")
  const sourcesOfCall = makeSources?.(ask)
  const renew = makeSeal?.()

  return (code, call, input, body) => {
    try {
      let handler: unknown
      const addHandler = (event: unknown, fn: unknown): void => {
        if (event !== "transform") throw new TypeError(`addHandler: no event ${show(event)}, only "transform"`)
        if (typeof fn !== "function") throw new TypeError("addHandler: the handler is not a function")
        handler = fn
      }
      const console = consoleOf(call)
      const { context, isLoadedOnly, isReceived, request } = parse(input)
      const process = { env: { ...context.env } }
      sourcesOfCall?.begin()
      if (renew === undefined) {
        expose("console", console)
        expose("process", process)
        expose("addHandler", addHandler)
        apply(code, globalThis, [])
      } else {
        renew({ console, process, addHandler })
        apply(code(console, process, addHandler) as Code, globalThis, [])
      }
      if (typeof handler !== "function") {
        return ["NO_HANDLER", "Error", 'the code does not call addHandler("transform", …)', ""]
      }
      if (isLoadedOnly === true) return ["ok", "", ""]
      const { headers, query, parsed_query, path, method } = request
      const given = {
        headers,
        body: isReceived === true ? receivedBody(body) : parse(body),
        query,
        parsed_query,
        path,
        method
      }
      const before = {
        members: stringify({ headers, query, parsed_query, path, method }),
        body: isReceived === true ? stringify(given.body) : body
      }
      const result: unknown = apply(handler, undefined, [given, context])
      try {
        return settle(result, before)
      } catch (error) {
        return failure("INVALID_OUTPUT", error)
      }
    } catch (error) {
      return failure("RUNTIME_ERROR", error)
    } finally {
      sourcesOfCall?.end()
    }
  }
}
