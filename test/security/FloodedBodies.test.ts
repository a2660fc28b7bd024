import { once } from "node:events"
import { connect, type Socket } from "node:net"
import { afterAll, describe, expect } from "vitest"
import type { Source } from "../support/Contract.ts"
import { requestBytes, talk } from "../support/RawHttp.ts"
import { attackFrom } from "../support/Attacker.ts"
import { watch } from "../support/Watch.ts"
import { heldMs, watchedLoop } from "../support/LoopHeld.ts"
import { it as gatewayIt } from "../support/it.ts"
import { eventually } from "../support/Waiting.ts"

/** Bodies that are made to hold memory, the processor or connections. The bounds leave a busy machine a wide margin. */

const sockets = new Set<Socket>()

const it = gatewayIt
  .extend("settings", { scope: "file" }, watchedLoop)
  .extend("attacked", ({ gateway }) => gateway.source())
  .extend("plain", ({ gateway }) => gateway.source())
  .extend("watched", ({ gateway, plain }) => () => ({ pid: gateway.pid, port: gateway.port, path: `/e/${plain.id}` }))
  /** A connection that has sent `text`, and the status that it is answered with, 0 when it is closed without. */
  .extend(
    "begin",
    ({ gateway }) =>
      async (
        text: string | Uint8Array,
        localAddress = "127.0.0.1"
      ): Promise<{ readonly socket: Socket; readonly status: Promise<number>; readonly closed: Promise<void> }> => {
        const socket = connect({ port: gateway.port, host: "127.0.0.1", localAddress })
        sockets.add(socket)
        socket.on("error", () => {})
        const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()))
        const status = new Promise<number>((resolve) => {
          socket.once("data", (answer: Buffer) => resolve(Number(answer.toString("latin1", 9, 12))))
          void closed.then(() => resolve(0))
        })
        await once(socket, "connect")
        socket.write(text)
        return { socket, status, closed }
      }
  )
  .extend(
    "post",
    ({ begin }) =>
      async (source: Source, from: string): Promise<number> =>
        (await begin(requestBytes({ path: `/e/${source.id}`, body: "{}" }), from)).status
  )
  /** A body that comes in two parts. */
  .extend("halting", ({ gateway }) => async (source: Source): Promise<number> => {
    const bytes = requestBytes({ path: `/e/${source.id}`, body: "in two parts" })
    return (await talk(gateway.port, [bytes.subarray(0, -5), bytes.subarray(-5)], { answers: 1, pause: 20 })).final
      .status
  })

afterAll(() => {
  for (const socket of sockets) socket.destroy()
})

const mebibyte = 1024 * 1024

const chunkedHead = (path: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n`

describe("Chunks of one byte", () => {
  it("Tiny chunks from eight connections use no memory, and another sender is still served", async ({
    attacked,
    gateway,
    plain,
    watched
  }) => {
    await heldMs()
    const { answersMs, idleMb, peakMb, refused } = await watch(watched(), async () => {
      // On a busy machine this time may be too short for an answer, or for the plain sender: then they attack again.
      const answers = await eventually("they and the plain sender are answered", async () => {
        const { answers } = await attackFrom({
          attack: "chunks",
          port: gateway.port,
          path: `/e/${attacked.id}`,
          connections: 8,
          seconds: 5,
          requests: 50
        })
        const isAnswered = Object.keys(answers).some((status) => status !== "none")
        return isAnswered && (await gateway.requests(plain.id)).length > 11 ? answers : null
      })
      expect(Object.keys(answers).filter((status) => status !== "413" && status !== "none")).toEqual([])
      expect(answers["413"]).toBeGreaterThan(0)
    })
    expect(peakMb - idleMb).toBeLessThan(400)
    expect(refused).toBe(0)
    // Of the loop's own processor time, because others use the machine: the attack is part of that.
    expect((await heldMs()).processorMs).toBeLessThan(5_000)
    expect(answersMs.length).toBeGreaterThan(10)
    expect((await gateway.requests(attacked.id)).length).toBe(0)
  })

  it("Tiny chunks are accepted up to some thousand, and small ones while the body needs them", async ({
    gateway,
    target
  }) => {
    const { source } = await gateway.route(target)
    for (const [size, count] of [
      [1, 4_000],
      [64, 16_384]
    ] as const) {
      target.reset()
      const body = Buffer.from(Array.from({ length: size * count }, (_, i) => i % 251))
      const chunks = Array.from({ length: count }, (_, i) =>
        Buffer.concat([
          Buffer.from(`${size.toString(16)}\r\n`),
          body.subarray(i * size, (i + 1) * size),
          Buffer.from("\r\n")
        ])
      )
      const { final } = await talk(gateway.port, [chunkedHead(`/e/${source.id}`), Buffer.concat(chunks), "0\r\n\r\n"])
      expect(final.status).toBe(200)
      expect((await target.next())[0]!.body.equals(body)).toBe(true)
    }
  })

  for (const [where, path] of [
    ["a URL without a source", () => "/e/nowhere"],
    ["the control API", () => "/v1/sources"],
    ["an unknown URL", () => "/nobody"]
  ] as const) {
    it(`A flood of tiny chunks to ${where} ends the connection`, async ({ begin }) => {
      const { socket, status, closed } = await begin(chunkedHead(path()))
      const some = Buffer.from("1\r\nx\r\n".repeat(1_000))
      let sent = 0
      const flood = (async () => {
        for (; sent < 1_000 && !socket.destroyed; sent++) {
          if (!socket.write(some)) await Promise.race([once(socket, "drain").catch(() => {}), closed])
        }
      })()
      await closed
      await flood
      expect([0, 401, 404, 413]).toContain(await status)
      expect(sent).toBeLessThan(1_000)
    })
  }
})

describe("Slow bodies", () => {
  it("A slow attacker is disconnected after seconds, while merely slow senders complete", async ({
    attacked,
    begin,
    gateway,
    onTestFinished,
    watched
  }) => {
    const head = `POST /e/${attacked.id} HTTP/1.1\r\nHost: x\r\nContent-Length: ${10 * mebibyte}\r\n\r\n`
    const startedAt = performance.now()
    const slow = await Promise.all(Array.from({ length: 500 }, () => begin(`${head}x`)))
    // One keeps sending, a byte a second: what counts is how much comes, not that something does.
    const drip = await begin(head)
    const dripping = setInterval(() => drip.socket.writable && drip.socket.write("x"), 1_000)
    onTestFinished(() => clearInterval(dripping))

    const large = Buffer.alloc(10 * mebibyte, "l")
    const parts = Array.from({ length: 130 }, (_, i) =>
      large.subarray((i * large.length) / 130, ((i + 1) * large.length) / 130)
    )
    const modest = talk(gateway.port, [head.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"), ...parts], {
      answers: 1,
      pause: 100
    })
    const small = Buffer.alloc(13 * 2_048, "s")
    const smallParts = Array.from({ length: 13 }, (_, i) => small.subarray(i * 2_048, (i + 1) * 2_048))
    const slowest = talk(
      gateway.port,
      [requestBytes({ path: `/e/${attacked.id}`, body: small }).subarray(0, -small.length), ...smallParts],
      {
        answers: 1,
        pause: 1_000
      }
    )

    const watching = watch(watched(), async () => {
      const statuses = await Promise.all([...slow, drip].map(({ status }) => status))
      expect(new Set(statuses)).toEqual(new Set([408]))
      await Promise.all([...slow, drip].map(({ closed }) => closed))
      expect(performance.now() - startedAt).toBeGreaterThan(9_000)
    })
    const [{ peakMb, idleMb, refused }, ...served] = await Promise.all([watching, modest, slowest])
    expect(peakMb - idleMb).toBeLessThan(400)
    expect(refused).toBe(0)
    expect(served.map(({ final }) => final.status)).toEqual([200, 200])
    const stored = await gateway.requests(attacked.id)
    expect(stored.map(({ body_size }) => body_size).toSorted((a, b) => a - b)).toEqual([small.length, large.length])
  })
})

describe("Bodies under way", () => {
  const unfinished = (source: Source, bytes: number): Buffer =>
    Buffer.concat([
      Buffer.from(`POST /e/${source.id} HTTP/1.1\r\nHost: x\r\nContent-Length: ${10 * mebibyte}\r\n\r\n`),
      Buffer.alloc(bytes, "u")
    ])
  for (const [whose, where] of [
    ["one source", ([one], i) => [one!, `127.0.0.${2 + (i % 4)}`]],
    ["one address", (several, i) => [several[i % 3]!, "127.0.0.2"]]
  ] as ReadonlyArray<readonly [string, (sources: ReadonlyArray<Source>, i: number) => [Source, string]]>) {
    it(`Up to 1,024 bodies may be under way for ${whose}, and complete ones still pass beyond`, async ({
      attacked,
      begin,
      gateway,
      halting,
      plain,
      post
    }) => {
      const sources = [attacked, plain, await gateway.source()]
      const statuses: Array<number> = []
      const held = await Promise.all(
        Array.from({ length: 1_034 }, async (_, i) => {
          const [source, from] = where(sources, i)
          return begin(unfinished(source, 1), from)
        })
      )
      for (const { status } of held) void status.then((answered) => statuses.push(answered))
      await gateway.eventually("ten are refused", async () => (statuses.length >= 10 ? true : null))
      expect(await post(attacked, "127.0.0.2")).toBe(200)
      expect(await halting(plain)).toBe(200)
      expect(statuses).toEqual(Array.from({ length: 10 }, () => 429))
      for (const { socket } of held) socket.destroy()
      await Promise.all(held.map(({ closed }) => closed))
      await gateway.eventually("there is room again", async () => ((await halting(attacked)) === 200 ? true : null))
    })
  }

  it("Bodies under way have a memory limit for each source and are refused as they grow", async ({
    attacked,
    begin,
    gateway,
    halting,
    plain,
    post,
    watched
  }) => {
    const most = 128
    const { peakMb, idleMb } = await watch(watched(), async () => {
      const held = await Promise.all(
        Array.from({ length: 20 }, () => begin(unfinished(attacked, 10 * mebibyte - 1), "127.0.0.2"))
      )
      const statuses: Array<number> = []
      for (const { status } of held) void status.then((answered) => statuses.push(answered))
      await gateway.eventually("those that do not fit are refused", async () =>
        statuses.length >= 20 - Math.floor(most / 10) ? true : null
      )
      expect(new Set(statuses)).toEqual(new Set([429]))
      expect(statuses.length).toBeLessThan(20)
      expect(await post(plain, "127.0.0.3")).toBe(200)
      for (const { socket } of held) socket.destroy()
      await Promise.all(held.map(({ closed }) => closed))
    })
    expect(peakMb - idleMb).toBeLessThan(400)
    await gateway.eventually("all is given back", async () => ((await halting(attacked)) === 200 ? true : null))
  })
})

it("The gateway still works after all floods", async ({ gateway, target }) => {
  const { source } = await gateway.route(target)
  expect((await talk(gateway.port, [requestBytes({ path: `/e/${source.id}`, body: "last" })])).final.status).toBe(200)
  expect((await target.next())[0]!.body.toString()).toBe("last")
})
