import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { writeFile } from "node:fs/promises"
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2"
import { connect } from "node:net"
import { Agent } from "node:https"
import { join } from "node:path"
import { connect as connectTls } from "node:tls"
import { fileURLToPath } from "node:url"
import { WebSocket } from "@effect/platform-node/NodeWS"
import { Effect, Exit, Scope } from "effect"
import { describe, expect } from "vitest"
import { freePort } from "../support/Ports.ts"
import { eventually, waitUntil } from "../support/Waiting.ts"
import { it as gatewayIt } from "../support/it.ts"
import { temporaryFolder } from "../temporaryFolder.ts"

/** The recipes of `docs/deploying.md`, run by the proxies themselves: only ports and files are replaced in them. */

const api = "gateway.example.com"
const hooks = "hooks.example.com"

const file = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const certificate = file("packages/egress/test/fixtures/valid.pem")
const key = file("packages/egress/test/fixtures/key.pem")

/** The only code block of this language on the page. */
const recipeIn = (language: string): string => {
  const blocks = [...readFileSync(file("docs/deploying.md"), "utf8").matchAll(/```(\w+)\n([^]*?)```/g)]
  const [found, ...more] = blocks.filter(([, of]) => of === language)
  if (found === undefined || more.length > 0) throw new Error(`docs/deploying.md has no single block of ${language}`)
  return found[2]!
}

/** Replaces what must be in the recipe. */
const replaced = (text: string, pairs: ReadonlyArray<readonly [string, string]>): string =>
  pairs.reduce((changed, [from, to]) => {
    if (!changed.includes(from)) throw new Error(`the recipe does not contain ${from}`)
    return changed.replaceAll(from, to)
  }, text)

interface Place {
  readonly folder: string
  readonly port: number
  readonly gateway: number
}

interface Proxy {
  readonly name: string
  readonly version: string
  readonly language: string
  readonly configure: (recipe: string, place: Place) => string
  readonly start: (config: string) => ReadonlyArray<string>
}

const nginx: Proxy = {
  name: "nginx",
  version: "-v",
  language: "nginx",
  configure: (recipe, { folder, gateway, port }) => {
    const server = replaced(recipe, [
      ["listen 443 ", `listen 127.0.0.1:${port} `],
      ["127.0.0.1:8080", `127.0.0.1:${gateway}`],
      ["/etc/nginx/tls.crt", certificate],
      ["/etc/nginx/tls.key", key]
    ])
    const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((of) => `${of}_temp_path ${folder}/${of};`)
    const user = process.getuid?.() === 0 ? "user root;" : ""
    return `${user} daemon off; worker_processes 1; pid ${folder}/pid; error_log stderr warn;
      events { worker_connections 256; } http { access_log off; ${paths.join(" ")} ${server} }`
  },
  start: (config) => ["-c", config, "-e", "stderr"]
}

const caddy: Proxy = {
  name: "caddy",
  version: "version",
  language: "caddyfile",
  configure: (recipe, { folder, gateway, port }) => {
    const site = replaced(recipe, [
      [`${api}, ${hooks} {`, `https://${api}:${port}, https://${hooks}:${port} {\n  tls ${certificate} ${key}`],
      ["127.0.0.1:8080", `127.0.0.1:${gateway}`]
    ])
    return `{\n  admin off\n  auto_https disable_redirects\n  storage file_system ${folder}\n}\n${site}`
  },
  start: (config) => ["run", "--adapter", "caddyfile", "--config", config]
}

const searched = { ...process.env, PATH: `${process.env["PATH"] ?? ""}:/usr/sbin:/usr/local/sbin` }

/** Whether the machine has the program; says so if not. */
const isThere = ({ name, version }: Proxy): boolean => {
  const there = spawnSync(name, [version], { env: searched, stdio: "ignore" }).error === undefined
  if (!there) process.stdout.write(`No ${name} here: its recipe is not tried.\n`)
  return there
}

const listens = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1" })
    const over = (is: boolean): void => {
      socket.destroy()
      resolve(is)
    }
    socket.once("connect", () => over(true)).once("error", () => over(false))
  })

/** Runs the recipe before a gateway; its port. */
const run = async (proxy: Proxy, gateway: number, scope: Scope.Closeable): Promise<number> => {
  const folder = await Effect.runPromise(Scope.provide(temporaryFolder, scope))
  const port = await freePort()
  const config = join(folder, "config")
  await writeFile(config, proxy.configure(recipeIn(proxy.language), { folder, port, gateway }))
  const child: ChildProcess = spawn(proxy.name, proxy.start(config), {
    env: { ...searched, HOME: folder },
    stdio: ["ignore", "ignore", "pipe"]
  })
  let complained = ""
  child.stderr!.on("data", (data: Buffer) => (complained += data.toString()))
  const ended = once(child, "close")
  await Effect.runPromise(
    Scope.addFinalizer(
      scope,
      Effect.promise(() => (child.kill("SIGTERM"), ended))
    )
  )
  await waitUntil(`${proxy.name} listens`, async () => {
    if (child.exitCode !== null) throw new Error(`${proxy.name} has ended: ${complained}`)
    return listens(port)
  })
  return port
}

interface Said {
  readonly status: number
  readonly text: string
}

/** What a sender does by HTTP/2. */
const asking = (session: ClientHttp2Session, host: string) => {
  const open = (path: string, body: Uint8Array | string | null, headers: Record<string, string>) => {
    const method = body === null ? "GET" : "POST"
    const stream = session.request({ ":method": method, ":path": path, ":authority": host, ...headers })
    // A refusal may come before the whole body has gone.
    stream.on("error", () => {})
    stream.end(body ?? undefined)
    return stream
  }
  return {
    open,
    ask: async (
      path: string,
      body: Uint8Array | string | null = null,
      headers: Record<string, string> = {}
    ): Promise<Said> => {
      const stream = open(path, body, headers)
      const [answered] = await once(stream, "response")
      let text = ""
      stream.setEncoding("utf8").on("data", (data: string) => (text += data))
      await once(stream, "close")
      return { status: Number(answered[":status"]), text }
    }
  }
}

const it = gatewayIt
  .extend("settings", { scope: "file" }, () => ({
    PUBLIC_URL: `https://${api}`,
    TIDEGATE_INGRESS_URL: `https://${hooks}`,
    TIDEGATE_TRUSTED_PROXIES: "127.0.0.1"
  }))
  /** Runs a proxy before the gateway for the test. */
  .extend("behind", ({ gateway }, { onCleanup }) => {
    const scope = Scope.makeUnsafe()
    const open: Array<{ readonly end: () => void }> = []
    onCleanup(async () => {
      for (const { end } of open) end()
      await Effect.runPromise(Scope.close(scope, Exit.void))
    })
    return async (proxy: Proxy) => {
      const port = await run(proxy, gateway.port, scope)
      const by = (host: string) => {
        const session = connectHttp2(`https://${host}`, {
          createConnection: () =>
            connectTls({
              socket: connect({ port, host: "127.0.0.1", localAddress: "127.0.0.9" }),
              servername: host,
              ALPNProtocols: ["h2"],
              rejectUnauthorized: false
            })
        })
        session.on("error", () => {})
        open.push({ end: () => session.destroy() })
        return asking(session, host)
      }
      const socket = (path: string): WebSocket => {
        const made = new WebSocket(`wss://127.0.0.1:${port}${path}`, [], {
          headers: { host: api, authorization: `Bearer ${gateway.key}` },
          agent: new Agent({ servername: api, rejectUnauthorized: false })
        })
        made.on("error", () => {})
        open.push({ end: () => made.terminate() })
        return made
      }
      return { sender: by(hooks), operator: by(api), socket }
    }
  })

const idOf = ({ text }: Said): string => JSON.parse(text).request_id

describe.for([nginx, caddy].filter(isThere))("Gateway behind $name", (proxy) => {
  it("Webhooks over HTTP/2, large bodies, client addresses, WebSockets and streamed answers pass the recipe", async ({
    behind,
    gateway,
    target,
    upstream
  }) => {
    const { operator, sender, socket } = await behind(proxy)
    const { source } = await gateway.route(target)
    expect(source.url).toBe(`https://${hooks}/e/${source.id}`)

    // The client's address is the connection's, whatever the client says of it.
    const sent = await sender.ask(`/e/${source.id}`, '{"n":1}', {
      "x-forwarded-for": "192.0.2.1",
      forwarded: "for=192.0.2.2"
    })
    expect(sent.status).toBe(200)
    const [delivered] = await target.next()
    expect(delivered!.headers["x-gateway-original-ip"]).toBe("127.0.0.9")
    expect(delivered!.body.toString()).toBe('{"n":1}')

    // The largest body is stored, and the gateway itself refuses a larger one.
    const most = 10 * 1024 * 1024
    expect((await sender.ask(`/e/${source.id}`, Buffer.alloc(most, "a"))).status).toBe(200)
    const refused = await sender.ask(`/e/${source.id}`, Buffer.alloc(most + 1, "a"))
    expect(JSON.parse(refused.text)).toMatchObject({ code: "PAYLOAD_TOO_LARGE" })
    expect(refused.status).toBe(413)

    // Each host has its own part of the gateway.
    expect((await operator.ask(`/e/${source.id}`, "{}")).status).toBe(404)
    expect((await sender.ask("/healthz")).status).toBe(404)
    expect((await operator.ask("/healthz")).status).toBe(200)

    const frames: Array<{ readonly type: string; readonly request?: { readonly id: string } }> = []
    const stream = socket(`/v1/bins/${source.id}/stream`)
    stream.on("message", (data: Buffer) => frames.push(JSON.parse(data.toString())))
    await eventually("the stream's greeting", () => frames[0])
    const seen = idOf(await sender.ask(`/e/${source.id}`, '{"n":2}'))
    await eventually("the request in the stream", () => frames.find(({ request }) => request?.id === seen))

    // The first part of an answer arrives while the upstream has not decided about the second one.
    let finish = (): void => {}
    upstream.reply = (response) => {
      response.writeHead(200, { "content-type": "text/plain" }).write("first")
      finish = () => void response.end(", second")
    }
    const proxying = await gateway.source({
      mode: "proxy",
      proxy: { target_url: upstream.origin },
      allowed_http_methods: ["GET"]
    })
    const answer = sender.open(`/e/${proxying.id}`, null, {}).setEncoding("utf8")
    let text = ""
    answer.on("data", (part: string) => (text += part))
    await waitUntil("the first part", () => text === "first")
    finish()
    await once(answer, "close")
    expect(text).toBe("first, second")
  })
})
