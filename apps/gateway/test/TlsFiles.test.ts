import { once } from "node:events"
import { copyFile, rm, writeFile } from "node:fs/promises"
import { type AddressInfo } from "node:net"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { connect } from "node:tls"
import { describe, expect, it } from "@effect/vitest"
import { ConfigProvider, Effect, Exit } from "effect"
import { TestClock } from "effect/testing"
import { wireServer } from "@tidegate/ingress/wire/WireServer"
import { followTlsFiles, tlsFiles } from "../src/TlsFiles.ts"
import { temporaryFolder } from "../../../test/temporaryFolder.ts"

const fixture = (name: string): string =>
  fileURLToPath(new URL(`../../../packages/egress/test/fixtures/${name}.pem`, import.meta.url))

/** A certificate and its key in a folder of their own. Two certificates of the fixtures have the same key. */
const files = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  const at = { certificate: join(folder, "tls.crt"), key: join(folder, "tls.key") }
  yield* Effect.promise(() =>
    Promise.all([copyFile(fixture("valid"), at.certificate), copyFile(fixture("key"), at.key)])
  )
  return at
})

/** Its port. */
const serving = (at: { readonly certificate: string; readonly key: string }) =>
  Effect.gen(function* () {
    const tls = yield* followTlsFiles(at)
    const server = wireServer(null, { tls })
    yield* Effect.acquireRelease(
      Effect.promise(() => once(server.listen({ port: 0, host: "127.0.0.1" }), "listening")),
      () => Effect.promise(() => new Promise((resolve) => server.close(resolve)))
    )
    return (server.address() as AddressInfo).port
  })

/** Who issued the certificate that a new client is shown. */
const issuerAt = (port: number): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false })
    socket.once("error", reject)
    socket.once("secureConnect", () => {
      const { issuer } = socket.getPeerCertificate()
      socket.destroy()
      resolve(String(issuer.CN))
    })
  })

const refusal = (at: { readonly certificate: string; readonly key: string }) =>
  Effect.map(Effect.flip(followTlsFiles(at)), ({ message }) => message)

describe("TLS of the gateway", () => {
  it.effect("New connections get a certificate that has replaced the one from the start", () =>
    Effect.gen(function* () {
      const at = yield* files
      const port = yield* serving(at)
      const first = yield* Effect.promise(() => issuerAt(port))
      yield* Effect.promise(() => copyFile(fixture("self-signed"), at.certificate))
      // Each turn of the clock begins a look, which reads the files in real time.
      const second = yield* Effect.gen(function* () {
        yield* TestClock.adjust("5 seconds")
        return yield* Effect.promise(() => issuerAt(port))
      }).pipe(Effect.repeat({ while: (issuer) => issuer === first, times: 1_000 }))
      expect(second).not.toBe(first)
    })
  )

  it.effect("Files that cannot be used while the gateway runs change nothing", () =>
    Effect.gen(function* () {
      const at = yield* files
      const port = yield* serving(at)
      const first = yield* Effect.promise(() => issuerAt(port))
      yield* Effect.promise(() => writeFile(at.certificate, "half of a certificate"))
      for (let turn = 0; turn < 3; turn++) {
        yield* TestClock.adjust("5 seconds")
        expect(yield* Effect.promise(() => issuerAt(port))).toBe(first)
      }
      // It goes on looking afterwards.
      yield* Effect.promise(() => copyFile(fixture("self-signed"), at.certificate))
      const later = yield* Effect.gen(function* () {
        yield* TestClock.adjust("5 seconds")
        return yield* Effect.promise(() => issuerAt(port))
      }).pipe(Effect.repeat({ while: (issuer) => issuer === first, times: 1_000 }))
      expect(later).not.toBe(first)
    })
  )

  it.effect("Files that cannot be used at the start are refused by a sentence without their content", () =>
    Effect.gen(function* () {
      const at = yield* files
      yield* Effect.promise(() =>
        writeFile(at.key, "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n")
      )
      expect(yield* refusal(at)).toBe(
        `TIDEGATE_TLS_CERT and TIDEGATE_TLS_KEY: ${at.certificate} and ${at.key} must be a certificate and its key in PEM format, without a passphrase`
      )
      yield* Effect.promise(() => rm(at.key))
      expect(yield* refusal(at)).toBe(`TIDEGATE_TLS_KEY: the file ${at.key} cannot be read (ENOENT)`)
    })
  )

  it.effect("Certificate and key are only accepted together", () =>
    Effect.gen(function* () {
      const read = (env: Record<string, string>) =>
        Effect.provideService(tlsFiles, ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env }))
      expect(yield* read({})).toBeNull()
      expect(yield* read({ TIDEGATE_TLS_CERT: "a", TIDEGATE_TLS_KEY: "b" })).toEqual({ certificate: "a", key: "b" })
      for (const name of ["TIDEGATE_TLS_CERT", "TIDEGATE_TLS_KEY"])
        expect(Exit.isFailure(yield* Effect.exit(read({ [name]: "a" })))).toBe(true)
    })
  )
})
