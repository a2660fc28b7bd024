import { describe, expect, it } from "@effect/vitest"
import { globSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { loudEffectModules, outboundUses } from "./outboundUses.ts"

/**
 * Every outbound connection goes through the guard of this package (design, invariant 8). This suite reads all sources of
 * the gateway and fails on anything else that can open one. A use that is right is listed below with its reason; a new
 * package that opens no connections is named in `outboundUses.ts`.
 */
const exceptions: ReadonlyArray<{
  readonly files: RegExp
  readonly from: RegExp
  readonly names: ReadonlyArray<string>
  readonly reason: string
}> = [
  {
    files: /^packages\/egress\/src\//,
    from: /^(undici|node:net|node:tls|node:dns\/promises)$/,
    names: ["buildConnector", "errors", "Pool", "connect", "Socket", "getCACertificates", "Resolver"],
    reason: "the guard itself"
  },
  {
    files: /^packages\/(storage|embedded-postgres)\/src\//,
    from: /^@effect\/sql-pg(\/\w+)?$/,
    names: ["PgClient", "make"],
    reason: "the gateway's own database, at an address the operator sets"
  },
  {
    files: /^packages\/foreign-databases\/src\/PostgresServers\.ts$/,
    from: /^@effect\/sql-pg\/PgConnection$/,
    names: ["make"],
    reason: "speaks to other people's databases over streams that it is given: the guard opens their sockets"
  },
  {
    files: /^packages\/entities\/src\/Wire\/ClusterWire\.ts$/,
    from: /^(@effect\/platform-node\/NodeSocket|effect\/socket|node:tls)$/,
    names: ["fromDuplex", "Socket", "connect"],
    reason:
      "the cluster's own transport: between runners, at addresses they registered in our database, by a key they share"
  },
  {
    files: /^packages\/coordination\/src\/Redis(Connection|Feed)\.ts$/,
    from: /^ioredis$/,
    names: ["Redis"],
    reason: "the Redis that the gateway's processes share, at an address that the operator sets"
  },
  {
    files: /^packages\/telemetry\/src\/Otlp\.ts$/,
    from: /^effect\/http$/,
    names: ["FetchHttpClient"],
    reason: "the collector of metrics and traces, at an address that the operator sets; it follows no redirects"
  },
  {
    files: /^packages\/entities\/src\/Alerts\/MailServer\.ts$/,
    from: /^nodemailer$/,
    names: ["createTransport"],
    reason: "the operator's mail server for alerts, at an address that the operator sets; it reads no files and no URLs"
  },
  {
    files: /^packages\/client\/src\//,
    from: /^(global|openapi-fetch)$/,
    names: ["fetch", "WebSocket", "*"],
    reason:
      "runs at its users, and calls the gateway, and an app on the same machine for a tunnel; no part of the gateway may import it"
  },
  {
    files: /^packages\/connectors\/src\/WrittenLetter\.ts$/,
    from: /^nodemailer\/lib\/mail-composer$/,
    names: ["*"],
    reason: "composes a letter of texts and sends nothing; its ways to read files and URLs are switched off"
  },
  {
    files: /^packages\/connectors\/src\/Dkim\.ts$/,
    from: /^nodemailer\/lib\/dkim\/sign$/,
    names: ["*"],
    reason: "signs the headers of a letter with a key that it is given"
  },
  {
    files: /^packages\/formatter\/src\/engine\/Libraries\.ts$/,
    from: /^node:module$/,
    names: ["createRequire"],
    reason: "loads libraries of texts and numbers when an operation first needs one; their names stand there"
  },
  {
    files: /^apps\/cli\/src\//,
    from: /^(global|node:net)$/,
    names: ["fetch", "connect"],
    reason:
      "the command line, a program of its users: posts to a source, and looks whether an app of its machine is there"
  },
  {
    files: /^apps\/cli\/src\/OlderNode\.ts$/,
    from: /^(global|ws)$/,
    names: ["WebSocket", "globalThis"],
    reason:
      "gives the command line, a program of its users, the WebSocket that Node has only since version 22; opens none"
  },
  {
    files: /^apps\/cli\/src\/workflows\/Files\.ts$/,
    from: /^\*$/,
    names: ["*"],
    reason: "the command line, a program of its users: loads the module with workflows that its user names"
  },
  {
    files: /^packages\/api\/src\/GuidePages\.ts$/,
    from: /^markdown-it$/,
    names: ["*"],
    reason: "makes pages of texts that come with the gateway"
  },
  {
    files: /^packages\/api\/src\/DocsPage\.ts$/,
    from: /^\*$/,
    names: ["*"],
    reason: "loads a script that comes with a package, from its installed file"
  },
  {
    files: /^packages\/api\/src\/streams\/Sockets\.ts$/,
    from: /^@effect\/platform-node\/NodeWS$/,
    names: ["WebSocketServer"],
    reason: "answers handshakes on connections that were accepted; it opens none"
  },
  {
    files: /^packages\/outbound-auth\/src\/types\/SignedJwt\.ts$/,
    from: /^jose\/jwt\/sign$/,
    names: ["SignJWT"],
    reason: "signs a token with a key that it is given"
  },
  {
    files: /^packages\/api\/src\/IdTokens\.ts$/,
    from: /^jose$/,
    names: ["createLocalJWKSet", "errors", "jwtVerify"],
    reason: "verifies tokens with keys that it is given; what would fetch them is not used"
  },
  {
    files: /^packages\/api\/src\/dashboard\/(CodeExchange|ProviderSignIn)\.ts$/,
    from: /^oauth4webapi$/,
    names: [
      "allowInsecureRequests",
      "AuthorizationResponseError",
      "authorizationCodeGrantRequest",
      "calculatePKCECodeChallenge",
      "ClientSecretBasic",
      "ClientSecretPost",
      "customFetch",
      "generateRandomCodeVerifier",
      "generateRandomNonce",
      "generateRandomState",
      "validateAuthResponse"
    ],
    reason: "asks for an ID token through the way out, which it gives the library for its call; the rest reaches nobody"
  },
  {
    files: /^packages\/entities\/src\/tokens\/Token(Endpoint|Revocation)\.ts$/,
    from: /^(jose|oauth4webapi)$/,
    names: [
      "SignJWT",
      "allowInsecureRequests",
      "ClientSecretBasic",
      "ClientSecretPost",
      "customFetch",
      "genericTokenEndpointRequest",
      "None",
      "processGenericTokenEndpointResponse",
      "revocationRequest"
    ],
    reason:
      "asks for tokens, and revokes them, through the way out, which it gives the library for its calls; signing reaches nobody"
  },
  {
    files: /^packages\/channels\/src\/FeedDocument\.ts$/,
    from: /^htmlparser2$/,
    names: ["Parser"],
    reason: "reads the text of a feed, and reaches nobody"
  },
  {
    files: /^packages\/embedded-postgres\/src\/Binaries\.ts$/,
    from: /^node:module$/,
    names: ["createRequire"],
    reason: "finds where the database's programs are installed; loads nothing"
  },
  {
    files: /^packages\/sandbox\/src\/ChildProcess\.ts$/,
    from: /^(node:module|global)$/,
    names: ["createRequire", "require"],
    reason: "finds where the engine is installed; loads nothing"
  },
  {
    files: /^packages\/sandbox\/src\/child\/program\.mjs$/,
    from: /^node:module$/,
    names: ["registerHooks"],
    reason: "gives the program the sources that the parent has sent; opens nothing"
  },
  {
    files: /^packages\/sandbox\/src\/child\//,
    from: /^(isolated-vm|global)$/,
    names: ["Isolate", "ExternalCopy", "Callback", "globalThis"],
    reason: "runs code in isolates that have no network, in processes that may open no socket"
  }
]

const root = fileURLToPath(new URL("../../..", import.meta.url))

const sources = globSync(
  ["packages/*/src/**/*.{ts,tsx,mts,cts,js,jsx,mjs,cjs}", "apps/*/src/**/*.{ts,tsx,mts,cts,js,jsx,mjs,cjs}"],
  {
    cwd: root,
    // The dashboard runs in the browsers of its users, and no part of the gateway may import it.
    exclude: ["**/node_modules/**", "apps/dashboard/**"]
  }
)

/** Every outbound use in the sources, excepted or not. */
const uses = sources.flatMap((file) =>
  outboundUses(readFileSync(`${root}/${file}`, "utf8"), file).map(({ from, name, line }) => ({
    file,
    from,
    name,
    line
  }))
)

const isExcepted = (file: string, from: string, name: string): boolean =>
  exceptions.some(
    (exception) => exception.files.test(file) && exception.from.test(from) && exception.names.includes(name)
  )

describe("Outbound connections", () => {
  it("Package egress is the only code that opens outbound connections", () => {
    expect(sources.length).toBeGreaterThan(5)
    const violations = uses
      .filter(({ file, from, name }) => !isExcepted(file, from, name))
      .map(({ file, from, name, line }) => `${file}:${line} uses ${name} of ${from}`)
    expect(violations).toEqual([])
  })

  it("List of exceptions has no exception that nobody needs", () => {
    const idle = exceptions.flatMap(({ files, from, names, reason }) =>
      names
        .filter((name) => !uses.some((use) => files.test(use.file) && from.test(use.from) && use.name === name))
        .map((name) => `${name} of ${from}: ${reason}`)
    )
    expect(idle).toEqual([])
  })

  it("Every module of Effect that opens connections is known to this suite", () => {
    const effect = fileURLToPath(new URL("./", import.meta.resolve("effect")))
    const loud = globSync("**/*.js", { cwd: effect, exclude: ["**/internal/**"] }).filter((file) => {
      const source = readFileSync(`${effect}/${file}`, "utf8")
      if (!/\b(fetch|WebSocket|EventSource|XMLHttpRequest|node:)\b/.test(source)) return false
      // A variable of the module's own may have one of those names.
      const isOwn = (name: string) =>
        !source.includes(`globalThis.${name}`) && new RegExp(`\\b(const|let|class|function) ${name}\\b`).test(source)
      return outboundUses(source, file).some(
        ({ from, name }) => from !== "global" || (name !== "globalThis" && name !== "*" && !isOwn(name))
      )
    })
    expect(loud.toSorted()).toEqual(loudEffectModules.map((module) => `${module}.js`).toSorted())
  })
})

describe("Search for outbound calls", () => {
  it.each([
    ['import { connect } from "node:net"', "node:net connect"],
    ['import { connect as open } from "net"', "net connect"],
    ['import { createServer, Socket } from "node:net"\nnew Socket()', "node:net Socket"],
    ['import * as Net from "node:net"\nNet.createConnection(80)', "node:net createConnection"],
    ['import * as Net from "node:net"\nNet["connect"](80)', "node:net connect"],
    ['import * as Net from "node:net"\nNet[which](80)', "node:net *"],
    ['import * as Net from "node:net"\nconst { connect } = Net', "node:net *"],
    ['import Net from "node:net"\nconst open = Net.connect', "node:net connect"],
    ['import Net, { createServer } from "node:net"\nuse(Net)', "node:net *"],
    ['import { default as Net } from "node:net"\nNet.connect(80)', "node:net connect"],
    ['export { connect } from "node:tls"', "node:tls connect"],
    ['export * from "node:tls"', "node:tls *"],
    ['export * as tls from "node:tls"', "node:tls *"],
    ['const { request } = await import("node:http")', "node:http *"],
    ["const { request } = await import(`node:http`)", "* *"],
    ["const it = await import(which)", "* *"],
    ['import http = require("node:http")', "node:http *"],
    ['const http = require("http")', "global require"],
    ['import { createRequire } from "node:module"', "node:module createRequire"],
    ['process.getBuiltinModule("net").connect(80)', "global getBuiltinModule"],
    ['process.binding("tcp_wrap")', "global binding"],
    ['import { request } from "node:http"', "node:http request"],
    ['import { get } from "https"', "https get"],
    ['import { Agent } from "node:http"', "node:http Agent"],
    ['import { connect } from "node:http2"', "node:http2 connect"],
    ['import { createSocket } from "node:dgram"', "node:dgram createSocket"],
    ['import { lookup } from "node:dns/promises"', "node:dns/promises lookup"],
    ['import dns from "dns"\ndns.resolve("a")', "dns resolve"],
    ['import "_http_client"', "_http_client *"],
    ['import { Agent, request } from "undici"', "undici Agent", "undici request"],
    ['import ws from "ws"\nnew ws("ws://a")', "ws *"],
    ['import { createTransport } from "nodemailer"', "nodemailer createTransport"],
    ['import "some-sdk/register"', "some-sdk/register *"],
    ['import { PgClient } from "@effect/sql-pg"', "@effect/sql-pg PgClient"],
    ['import * as PgClient from "@effect/sql-pg/PgClient"\nPgClient.layer({})', "@effect/sql-pg/PgClient layer"],
    ['import { NodeHttpClient } from "@effect/platform-node"', "@effect/platform-node NodeHttpClient"],
    ['import * as N from "@effect/platform-node"\nN.NodeSocket.layerNet({})', "@effect/platform-node NodeSocket"],
    [
      'import { layerUndici } from "@effect/platform-node/NodeHttpClient"',
      "@effect/platform-node/NodeHttpClient layerUndici"
    ],
    [
      'import * as C from "@effect/platform-node/NodeSocket"\nC.layerNet({})',
      "@effect/platform-node/NodeSocket layerNet"
    ],
    ['import { FetchHttpClient } from "effect/http"', "effect/http FetchHttpClient"],
    ['import { layer } from "effect/http/FetchHttpClient"', "effect/http/FetchHttpClient layer"],
    ['import { Socket } from "effect/socket"', "effect/socket Socket"],
    ['await fetch("http://a")', "global fetch"],
    ["const send = fetch", "global fetch"],
    ["use({ fetch })", "global fetch"],
    ["use(<T,>(a: T) => fetch as T)", "global fetch"],
    ["class A { go = () => fetch!(url) }", "global fetch"],
    ['globalThis.fetch("http://a")', "global fetch"],
    ['globalThis["fetch"]("http://a")', "global fetch"],
    ["globalThis[name]()", "global *"],
    ["const { fetch: send } = globalThis", "global globalThis"],
    ['new WebSocket("ws://a")', "global WebSocket"],
    ['new EventSource("http://a")', "global EventSource"],
    ["export { fetch }", "global fetch"],
    ["// a comment\n\nconst text = `${await fetch(url)}`", "global fetch"]
  ])("Search for outbound calls finds %s", (source, ...expected) => {
    expect(outboundUses(source).map(({ from, name }) => `${from} ${name}`)).toEqual(expected)
  })

  it.each([
    'import type { Socket } from "node:net"',
    'import { type Socket, createServer } from "node:net"\ncreateServer((socket: Socket) => socket.end())',
    'import * as Net from "node:net"\nconst at = (s: Net.Socket) => Net.isIP(s.remoteAddress ?? "")',
    'import { createServer, type IncomingMessage } from "node:http"',
    'import type * as undici from "undici"',
    'export type { Pool } from "undici"',
    'import { NodeHttpServer, NodeRuntime } from "@effect/platform-node"',
    'import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"\nNodeHttpServer.layer()',
    'import { HttpRouter, HttpServerRequest } from "effect/http"',
    'import { PgTypes } from "@effect/sql-pg"',
    'import { Effect } from "effect"\nimport * as Sharding from "effect/cluster/Sharding"\nSharding.make()',
    'import { deliver } from "@tidegate/egress/Egress"\nimport { a } from "./fetch.ts"',
    'import { createHash } from "node:crypto"\nimport "node:fs"',
    "cache.fetch(key)",
    "const a = { fetch: 1 }\na.fetch",
    "class Reader { fetch() { return this.fetch } }",
    "type Fetch = typeof fetch\nconst a = b as typeof globalThis.fetch",
    "interface A { fetch: WebSocket }",
    '// fetch("http://a")\nconst text = "fetch(url)" + `WebSocket` + /fetch\\("/.source',
    "globalThis.crypto.randomUUID()",
    "const resources: typeof import('../contract/Parameters.ts') = x"
  ])("Search for outbound calls ignores %s", (source) => expect(outboundUses(source)).toEqual([]))

  it("Search for outbound calls reports the line", () => {
    expect(outboundUses('import { a } from "./a.ts"\n\nfetch(a)\n')).toEqual([
      { from: "global", name: "fetch", line: 3 }
    ])
  })

  it("Exceptions apply only to the listed names in the listed files", () => {
    expect(isExcepted("packages/storage/src/Database.ts", "@effect/sql-pg", "PgClient")).toBe(true)
    expect(isExcepted("packages/connectors/src/SqlDatabase.ts", "@effect/sql-pg", "PgClient")).toBe(false)
    expect(isExcepted("packages/storage/src/Database.ts", "node:net", "connect")).toBe(false)
    expect(isExcepted("packages/egress/src/Guard.ts", "undici", "request")).toBe(false)
    expect(isExcepted("packages/egress/src/Guard.ts", "global", "fetch")).toBe(false)
  })
})
