import { WebSocket } from "@effect/platform-node/NodeWS"
import type { Body } from "./Gateway.ts"
import { eventually } from "./Waiting.ts"

/** The client's answer to a delivery; null: none. */
export type Reply = (delivery: Body) => object | null

const ok: Reply = () => ({ status: 200, headers: { "content-type": "text/plain" }, body: "ok" })

/** A tunnel client that keeps all messages that it receives. It answers each delivery at once with `reply`. */
export class TunnelClient {
  readonly frames: Array<Body> = []
  readonly socket: WebSocket
  reply: Reply
  closed: { readonly code: number; readonly reason: string } | null = null
  refused: number | null = null

  constructor(
    origin: string,
    destination: string,
    options: {
      readonly key?: string
      readonly headers?: Record<string, string>
      readonly protocols?: ReadonlyArray<string>
      readonly localUrl?: string
      readonly reply?: Reply
      readonly path?: string
    } = {}
  ) {
    const { headers, key, localUrl, path = "/v1/connect", protocols = [], reply = ok } = options
    this.reply = reply
    const query = new URLSearchParams({ destination_id: destination })
    if (localUrl !== undefined) query.set("local_url", localUrl)
    this.socket = new WebSocket(`${origin.replace("http", "ws")}${path}?${query.toString()}`, [...protocols], {
      headers: headers ?? (key === undefined ? {} : { authorization: `Bearer ${key}` })
    })
    this.socket.on("message", (data: Buffer) => {
      const frame: Body = JSON.parse(data.toString())
      this.frames.push(frame)
      if (frame.type !== "delivery") return
      const said = this.reply(frame)
      if (said !== null) this.answer(frame.job_id, said)
    })
    this.socket.on("close", (code, reason) => {
      this.closed = { code, reason: reason.toString() }
    })
    this.socket.on("unexpected-response", (_, response) => {
      this.refused = response.statusCode ?? 0
      response.resume()
      this.socket.terminate()
    })
    this.socket.on("error", () => {})
  }

  say(frame: object): void {
    if (this.socket.readyState === 1) this.socket.send(JSON.stringify(frame))
  }

  answer(job: string, said: object): void {
    this.say({ type: "delivery_result", job_id: job, ...said })
  }

  get deliveries(): ReadonlyArray<Body> {
    return this.frames.filter(({ type }) => type === "delivery")
  }

  greeted(): Promise<Body> {
    return eventually("a hello", () => this.frames.find(({ type }) => type === "hello"))
  }

  /** The deliveries, once there are `count` of them. */
  delivered(count: number): Promise<ReadonlyArray<Body>> {
    return eventually(`${count} deliveries`, () => (this.deliveries.length >= count ? this.deliveries : null))
  }

  ended(): Promise<{ readonly code: number; readonly reason: string }> {
    return eventually("the end of the tunnel", () => this.closed)
  }

  /** Drops the connection without a close message, as a machine that is switched off does. */
  drop(): void {
    this.socket.terminate()
  }

  leave(): void {
    this.socket.close(1000, "")
  }
}
