import { Config, Context, Effect, Option, Redacted, Result, Schema, SchemaIssue } from "effect"
import { resolve } from "node:path"
import type { MailSettings } from "@tidegate/entities/Alerts/MailServer"
import { type LoopLimits, loopLimits } from "@tidegate/entities/Loops"
import { CallsAtOnce } from "@tidegate/entities/Workflow/RunRoom"
import { type RedisAddress, redisAddress } from "@tidegate/coordination/RedisAddress"
import { foldAddress } from "@tidegate/model/EmailAddress"
import type { SignIn } from "@tidegate/api/SignInSettings"
import { teamLimits } from "@tidegate/resources/TeamLimits"
import { parseTrustedProxies, type TrustedProxies } from "@tidegate/model/TrustedProxies"
import { faultOfDatabaseUrl } from "@tidegate/storage/DatabaseUrl"
import { type RetentionDefaults, retentionDefaults } from "@tidegate/storage/retention/Retention"
import { homeSetting } from "./Home.ts"
import { domains, listed, origins, pageOrigins } from "./ListSettings.ts"
import { mailServer } from "./MailSettings.ts"
import { loopback, ownNames, publicUrlOf } from "./PublicUrl.ts"
import { SettingsError } from "./SettingsError.ts"
import { type TlsFiles, tlsFiles } from "./TlsFiles.ts"

export { SettingsError }

/** The role of the process: everything; ingress and control API only; or actors only. */
export type Role = "all" | "edge" | "runner"

export interface Settings {
  readonly port: number
  readonly host: string
  /** The control API's URL as seen from outside. */
  readonly publicUrl: string
  /** The origin of ingress URLs, if it differs. */
  readonly ingressUrl: string | null
  /** What the public port shows to its clients; null: it does not use TLS. */
  readonly tls: TlsFiles | null
  readonly home: string
  readonly databaseUrl: Redacted.Redacted | null
  /** The Redis that processes share; null: each process has its own counts and feeds. */
  readonly redis: RedisAddress | null
  readonly apiKey: Redacted.Redacted | null
  readonly secretKeys: Redacted.Redacted | null
  readonly role: Role
  readonly runnerHost: string
  /** Whether this runner may be on standby while others of its host can do the work. */
  readonly mayStandBy: boolean
  /** Null: 34431, or a free port if that is taken. */
  readonly runnerPort: number | null
  /** The proxies whose forwarded client addresses are trusted. */
  readonly trustedProxies: TrustedProxies
  readonly egressAllow: ReadonlyArray<string>
  /** Whether loopback targets are allowed only by default, because nobody but this machine reaches the gateway, and the setting is absent. */
  readonly egressByDefault: boolean
  /** Calls per minute of one API key to the control API; 0: no limit. */
  readonly apiRateLimit: number
  /** The origins whose web pages may call the control API. */
  readonly corsOrigins: ReadonlySet<string>
  /** Addresses of third-party APIs, by the APIs' own origins. */
  readonly apiOrigins: ReadonlyMap<string, string>
  /** Maximum number of unclaimed public bins, of all processes together; 0: bins cannot be created. */
  readonly publicBins: number
  /** Concurrent calls of one workflow's runs. */
  readonly workflowConcurrency: number
  /** Maximum number of rows of a team, by kind. */
  readonly teamLimits: { readonly [kind: string]: number }
  /** Limits for requests that lead back to the gateway. */
  readonly loops: LoopLimits
  readonly signIn: SignIn
  /** Domains from which the service itself sends e-mail. */
  readonly senderDomains: ReadonlySet<string>
  /** The mail server for alerts; null: there is none. */
  readonly mail: MailSettings | null
  readonly retention: RetentionDefaults
}

const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1()

/** The error of a variable that a schema reads. It never contains the value, which may be a secret. */
export const wrong = ({ cause, message }: Config.ConfigError): SettingsError => {
  if (!Schema.isSchemaError(cause)) return new SettingsError({ message })
  const said = issuesOf(cause.issue).issues.map(
    (issue) => `${(issue.path ?? []).map(String).join(".")}: ${lowered(issue.message)}`
  )
  return new SettingsError({ message: said.join("; ") })
}

const lowered = (text: string): string => text.slice(0, 1).toLowerCase() + text.slice(1)

export const port = (name: string) =>
  Config.schema(Schema.NumberFromString.check(Schema.isInt(), Schema.isBetween({ minimum: 0, maximum: 65535 })), name)

const upTo = (maximum: number, name: string) =>
  Config.schema(Schema.NumberFromString.check(Schema.isInt(), Schema.isBetween({ minimum: 0, maximum })), name)

const from1To = (maximum: number, name: string) =>
  Config.schema(Schema.NumberFromString.check(Schema.isInt(), Schema.isBetween({ minimum: 1, maximum })), name)

const days = (name: string) => from1To(3650, name)

const optional = (name: string) => Config.option(Config.Redacted(name))

/** All environment variables that the gateway reads; the README's table describes each. */
export const settings = Effect.gen(function* () {
  const host = yield* Config.withDefault(Config.String("HOST"), "127.0.0.1")
  const httpPort = yield* Config.withDefault(port("PORT"), 8080)
  const publicUrl = yield* Config.option(Config.URL("PUBLIC_URL"))
  const ingressUrl = Option.getOrNull(yield* Config.option(Config.URL("TIDEGATE_INGRESS_URL")))
  const home = yield* homeSetting
  const databaseUrl = Option.getOrNull(yield* optional("DATABASE_URL"))
  const redisUrl = Option.getOrNull(yield* optional("TIDEGATE_REDIS_URL"))
  const apiKey = Option.getOrNull(yield* optional("TIDEGATE_API_KEY"))
  const secretKeys = Option.getOrNull(yield* optional("TIDEGATE_SECRET_KEYS"))
  const role = yield* Config.withDefault(Config.Literals(["all", "edge", "runner"], "TIDEGATE_ROLE"), "all" as const)
  const runnerHost = yield* Config.withDefault(Config.String("TIDEGATE_RUNNER_HOST"), "127.0.0.1")
  const runnerPort = Option.getOrNull(yield* Config.option(port("TIDEGATE_RUNNER_PORT")))
  const standby = yield* Config.withDefault(Config.Literals(["on", "off"], "TIDEGATE_STANDBY"), "on" as const)
  const apiOrigins = yield* origins(
    "TIDEGATE_API_ORIGINS",
    yield* Config.withDefault(Config.String("TIDEGATE_API_ORIGINS"), "")
  )
  const corsOrigins = yield* pageOrigins(
    "TIDEGATE_CORS_ORIGINS",
    yield* Config.withDefault(Config.String("TIDEGATE_CORS_ORIGINS"), "")
  )
  const apiRateLimit = yield* Config.withDefault(upTo(1_000_000, "TIDEGATE_API_RATE_LIMIT"), 6_000)
  const publicBins = yield* Config.withDefault(upTo(100_000, "TIDEGATE_PUBLIC_BINS"), 1_000)
  const workflowConcurrency = yield* Config.withDefault(
    from1To(1_000, "TIDEGATE_WORKFLOW_CONCURRENCY"),
    Context.get(Context.empty(), CallsAtOnce)
  )
  const most: Record<string, number> = {}
  for (const [kind, limit] of Object.entries(teamLimits)) {
    most[kind] = yield* Config.withDefault(from1To(100_000_000, limit.setting), limit.most)
  }
  const hops = yield* Config.withDefault(from1To(100, "TIDEGATE_LOOP_HOPS"), loopLimits.hops)
  const descendants = yield* Config.withDefault(from1To(1_000_000, "TIDEGATE_LOOP_DESCENDANTS"), loopLimits.descendants)
  const payloadDays = yield* Config.withDefault(days("TIDEGATE_PAYLOAD_RETENTION_DAYS"), retentionDefaults.payloadDays)
  const recordDays = yield* Config.withDefault(days("TIDEGATE_RECORD_RETENTION_DAYS"), retentionDefaults.recordDays)
  const allow = Option.getOrNull(yield* Config.option(Config.String("TIDEGATE_EGRESS_ALLOW")))

  const proxies = listed(yield* Config.withDefault(Config.String("TIDEGATE_TRUSTED_PROXIES"), ""))
  const trustedProxies = parseTrustedProxies(proxies)
  if (Result.isFailure(trustedProxies)) {
    return yield* new SettingsError({
      message: `TIDEGATE_TRUSTED_PROXIES must be networks like 10.0.0.0/8 or addresses, with commas between them, and not all there are: "${trustedProxies.failure}" is none`
    })
  }

  const demoLogin = Option.getOrNull(yield* Config.option(Config.Literals(["on", "off"], "TIDEGATE_DEMO_LOGIN")))
  const newUsers = yield* Config.withDefault(
    Config.Literals(["refuse", "team"], "TIDEGATE_NEW_USERS"),
    "refuse" as const
  )
  const siteAdmins = yield* Config.withDefault(Config.String("TIDEGATE_SITE_ADMINS"), "")

  const senderDomains = yield* domains(
    "TIDEGATE_SENDER_DOMAINS",
    yield* Config.withDefault(Config.String("TIDEGATE_SENDER_DOMAINS"), "")
  )

  const mail = yield* mailServer()

  const oidcIssuer = Option.getOrNull(yield* Config.option(Config.String("TIDEGATE_OIDC_ISSUER")))
  const oidcAudience = Option.getOrNull(yield* Config.option(Config.String("TIDEGATE_OIDC_AUDIENCE")))
  const oidcSecret = Option.getOrNull(yield* optional("TIDEGATE_OIDC_CLIENT_SECRET"))

  if ((oidcIssuer === null) !== (oidcAudience === null)) {
    return yield* new SettingsError({ message: "TIDEGATE_OIDC_ISSUER and TIDEGATE_OIDC_AUDIENCE need each other" })
  }
  if (oidcIssuer !== null && !/^https?:$/.test(URL.parse(oidcIssuer)?.protocol ?? "")) {
    return yield* new SettingsError({ message: "TIDEGATE_OIDC_ISSUER must be an http or https URL" })
  }
  if (oidcSecret !== null && oidcIssuer === null) {
    return yield* new SettingsError({ message: "TIDEGATE_OIDC_CLIENT_SECRET needs TIDEGATE_OIDC_ISSUER" })
  }
  if (apiKey !== null && Redacted.value(apiKey).length < 12) {
    return yield* new SettingsError({ message: "TIDEGATE_API_KEY must have at least 12 characters" })
  }
  // Refused, because it would be treated as a project key and give no access.
  if (apiKey !== null && Redacted.value(apiKey).startsWith("gwp_")) {
    return yield* new SettingsError({ message: "TIDEGATE_API_KEY must not begin with gwp_, as project keys do" })
  }
  const fault = databaseUrl === null ? null : faultOfDatabaseUrl(databaseUrl)
  if (fault !== null) return yield* new SettingsError({ message: `DATABASE_URL ${fault}` })
  const redis = redisUrl === null ? null : redisAddress(redisUrl)
  if (redis !== null && Result.isFailure(redis)) {
    return yield* new SettingsError({ message: `TIDEGATE_REDIS_URL ${redis.failure}` })
  }
  if (recordDays < payloadDays) {
    return yield* new SettingsError({
      message: `TIDEGATE_RECORD_RETENTION_DAYS (${recordDays}) must not be less than TIDEGATE_PAYLOAD_RETENTION_DAYS (${payloadDays})`
    })
  }
  // A proxy on this machine brings others, and so does the cluster's port of a runner, although HOST is on loopback.
  const isAlone =
    loopback.has(host) &&
    (role !== "runner" || loopback.has(runnerHost)) &&
    [Option.getOrNull(publicUrl), ingressUrl].every((url) => url === null || ownNames.has(url.hostname)) &&
    proxies.length === 0
  const egressByDefault = allow === null && isAlone
  const tls = yield* tlsFiles
  // Refused, because a runner's port only has the health checks, which load balancers call without TLS.
  if (tls !== null && role === "runner") {
    return yield* new SettingsError({ message: "TIDEGATE_TLS_CERT has no effect on a runner: remove it there" })
  }
  const scheme = tls === null ? "http" : "https"
  const shownUrl = yield* publicUrlOf(publicUrl, { host, port: httpPort, scheme })
  if (ingressUrl !== null && !/^https?:$/.test(ingressUrl.protocol)) {
    return yield* new SettingsError({ message: "TIDEGATE_INGRESS_URL must be an http or https URL" })
  }
  if (ingressUrl !== null && URL.parse(shownUrl)?.host === ingressUrl.host) {
    return yield* new SettingsError({
      message: `TIDEGATE_INGRESS_URL must have another host than PUBLIC_URL (${shownUrl}): it keeps what sources answer away from the API's origin`
    })
  }
  return {
    port: httpPort,
    host,
    publicUrl: shownUrl,
    ingressUrl: ingressUrl === null ? null : ingressUrl.href.replace(/\/+$/, ""),
    tls,
    home: resolve(home),
    databaseUrl,
    redis: redis === null ? null : redis.success,
    apiKey,
    secretKeys,
    role,
    runnerHost,
    mayStandBy: standby === "on",
    runnerPort,
    egressAllow: egressByDefault ? ["127.0.0.0/8", "::1/128"] : listed(allow ?? ""),
    egressByDefault,
    trustedProxies: trustedProxies.success,
    apiRateLimit,
    apiOrigins,
    corsOrigins,
    publicBins,
    workflowConcurrency,
    teamLimits: most,
    loops: { hops, descendants },
    signIn: {
      // Anybody who reaches the demo login is an owner of the demo team, so by default it is on only if nobody else reaches the gateway.
      demo: demoLogin === null ? isAlone : demoLogin === "on",
      demoHosts: new Set([...ownNames, URL.parse(shownUrl)?.hostname ?? "localhost"]),
      demoThroughProxies: demoLogin === "on",
      siteAdmins: new Set(listed(foldAddress(siteAdmins))),
      foundsTeams: newUsers === "team",
      issuer: oidcIssuer === null || oidcAudience === null ? null : { issuer: oidcIssuer, audience: oidcAudience },
      clientSecret: oidcSecret
    },
    senderDomains,
    mail,
    retention: { payloadDays, recordDays }
  } satisfies Settings
}).pipe(Effect.catchTag("ConfigError", (error) => Effect.fail(wrong(error))))
