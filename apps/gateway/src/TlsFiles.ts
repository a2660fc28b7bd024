import { createHash, X509Certificate } from "node:crypto"
import { readFile } from "node:fs/promises"
import { createSecureContext, createServer, type Server } from "node:tls"
import { Config, Effect, Option, type Scope } from "effect"
import { SettingsError } from "./SettingsError.ts"

/** Files in PEM format: the certificate with those of its issuers behind it, and its key. */
export interface TlsFiles {
  readonly certificate: string
  readonly key: string
}

const path = (name: string) => Config.map(Config.option(Config.String(name)), Option.getOrNull)

/** The files of `TIDEGATE_TLS_CERT` and `TIDEGATE_TLS_KEY`; null: the gateway does not use TLS. */
export const tlsFiles = Effect.gen(function* () {
  const certificate = yield* path("TIDEGATE_TLS_CERT")
  const key = yield* path("TIDEGATE_TLS_KEY")
  if (certificate === null && key === null) return null
  if (certificate === null || key === null)
    return yield* new SettingsError({ message: "TIDEGATE_TLS_CERT and TIDEGATE_TLS_KEY need each other" })
  return { certificate, key } satisfies TlsFiles
})

/** How often the files are looked at. Files that Kubernetes or a client of ACME replaces give no reliable notice. */
const lookEvery = "5 seconds"

/** Less than a process waits for its connections when it ends. */
const handshakeMs = 4_000

/** What is in the files. */
interface Pair {
  readonly cert: Buffer
  readonly key: Buffer
  /** Tells one pair from another without keeping the key. */
  readonly digest: string
  readonly validTo: Date
}

const read = (name: string, file: string) =>
  Effect.tryPromise({
    try: () => readFile(file),
    catch: (error) =>
      new SettingsError({
        message: `${name}: the file ${file} cannot be read (${(error as NodeJS.ErrnoException).code})`
      })
  })

const readBoth = Effect.fnUntraced(function* ({ certificate, key: keyFile }: TlsFiles) {
  const cert = yield* read("TIDEGATE_TLS_CERT", certificate)
  const key = yield* read("TIDEGATE_TLS_KEY", keyFile)
  return { cert, key, digest: createHash("sha256").update(cert).update("\0").update(key).digest("hex") }
})

const checked = (both: Omit<Pair, "validTo">, { certificate, key }: TlsFiles): Effect.Effect<Pair, SettingsError> =>
  Effect.try({
    try: () => {
      createSecureContext(both)
      return { ...both, validTo: new Date(new X509Certificate(both.cert).validTo) }
    },
    // OpenSSL's own words can contain parts of a file.
    catch: () =>
      new SettingsError({
        message: `TIDEGATE_TLS_CERT and TIDEGATE_TLS_KEY: ${certificate} and ${key} must be a certificate and its key in PEM format, without a passphrase`
      })
  })

const told = ({ validTo }: Pair) =>
  Effect.logInfo(`TLS: the certificate is valid until ${validTo.toISOString().slice(0, 10)}`)

/**
 * A TLS server for `wireServer`, which follows the files: connections that come after a change get the new certificate, and open ones go on.
 * Files that cannot be used, or of which only one has been replaced yet, change nothing.
 */
export const followTlsFiles = Effect.fnUntraced(function* (
  files: TlsFiles
): Effect.fn.Return<Server, SettingsError, Scope.Scope> {
  const first = yield* Effect.flatMap(readBoth(files), (both) => checked(both, files))
  const server = createServer({
    cert: first.cert,
    key: first.key,
    ALPNProtocols: ["http/1.1"],
    minVersion: "TLSv1.2",
    handshakeTimeout: handshakeMs
  })
  yield* told(first)
  let seen = first.digest
  let isBroken = false
  const look = Effect.gen(function* () {
    const both = yield* readBoth(files)
    if (both.digest === seen) return
    const pair = yield* checked(both, files)
    server.setSecureContext({ cert: pair.cert, key: pair.key, minVersion: "TLSv1.2" })
    seen = pair.digest
    isBroken = false
    yield* told(pair)
  }).pipe(
    Effect.catch(({ message }) => {
      if (isBroken) return Effect.void
      isBroken = true
      return Effect.logWarning(`TLS goes on with the certificate from before. ${message}`)
    })
  )
  yield* Effect.forkScoped(Effect.forever(Effect.delay(look, lookEvery)))
  return server
})
