import { describe, expect, it } from "@effect/vitest"
import { ConfigProvider, Effect, Redacted, Result } from "effect"
import { connectors, knownOrigins, settingsOf } from "@tidegate/connectors/Connectors"
import type { Config } from "@tidegate/connectors/Settings"
import { settings, SettingsError } from "../src/Settings.ts"

const read = (env: Record<string, string>) =>
  Effect.provideService(settings, ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env }))

const refusal = (env: Record<string, string>) =>
  Effect.map(Effect.flip(read(env)), (error) => {
    expect(error).toBeInstanceOf(SettingsError)
    return error.message
  })

describe("Gateway settings", () => {
  it.effect("Setting TIDEGATE_API_ORIGINS redirects the calls of known APIs", () =>
    Effect.gen(function* () {
      const pairs = [...knownOrigins].map((origin, i) => `${origin}=http://127.0.0.1:${9000 + i}`)
      const { apiOrigins } = yield* read({ TIDEGATE_API_ORIGINS: pairs.join(", ") })
      expect([...apiOrigins.keys()]).toEqual([...knownOrigins])
      expect(apiOrigins.get("https://slack.com")).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    })
  )

  it.effect(
    "Demo login and deliveries to loopback are on by default only where no other machine reaches the process",
    () =>
      Effect.gen(function* () {
        const published = { PUBLIC_URL: "https://gateway.example.com" }
        const given = (env: Record<string, string>) =>
          Effect.map(read(env), ({ egressAllow, signIn }) => ({ egressAllow, demo: signIn.demo }))
        const alone = [
          {},
          { PUBLIC_URL: "http://localhost:9000" },
          { PUBLIC_URL: "http://[::1]:8080", TIDEGATE_INGRESS_URL: "http://127.0.0.1:8080" },
          { TIDEGATE_ROLE: "runner" }
        ]
        for (const env of alone) {
          expect([env, yield* given(env)]).toEqual([env, { demo: true, egressAllow: ["127.0.0.0/8", "::1/128"] }])
        }
        const reached = [
          { ...published, HOST: "0.0.0.0" },
          // Behind a proxy of the same machine.
          published,
          { TIDEGATE_INGRESS_URL: "https://hooks.example.com" },
          { TIDEGATE_TRUSTED_PROXIES: "127.0.0.1" },
          { TIDEGATE_ROLE: "runner", TIDEGATE_RUNNER_HOST: "10.0.0.5" }
        ]
        for (const env of reached) expect([env, yield* given(env)]).toEqual([env, { demo: false, egressAllow: [] }])
        const asked = { ...published, TIDEGATE_EGRESS_ALLOW: "127.0.0.1/32", TIDEGATE_DEMO_LOGIN: "on" }
        expect(yield* given(asked)).toEqual({ demo: true, egressAllow: ["127.0.0.1/32"] })
      })
  )

  it.effect("Error of a wrong setting names the variable and the fault, without the value", () =>
    Effect.gen(function* () {
      expect(yield* refusal({ PORT: "eighty" })).toBe("PORT: expected an integer")
      expect(yield* refusal({ TIDEGATE_ROLE: "worker" })).toBe('TIDEGATE_ROLE: expected "all" | "edge" | "runner"')
      expect(yield* refusal({ PUBLIC_URL: "hooks.example" })).toBe("PUBLIC_URL: expected a valid URL string")
      expect(yield* refusal({ DATABASE_URL: "mysql://ada:pass-word@127.0.0.1/shop" })).toBe(
        "DATABASE_URL must begin with postgres:// or postgresql://"
      )
    })
  )

  it.effect(
    "Database URL with a part that would have no effect is refused, and the error does not contain the password",
    () =>
      Effect.gen(function* () {
        const of = (url: string) => refusal({ DATABASE_URL: url })
        const hosts =
          "DATABASE_URL names several hosts, of which the gateway cannot choose one: name an address that always leads to the primary server"
        expect(yield* of("postgres://ada:pass-word@one:5432,two:5432/shop?target_session_attrs=read-write")).toBe(hosts)
        expect(yield* of("postgres://ada:pass,word@one,two/shop")).toBe(hosts)
        expect(yield* of("postgres:///shop?user=ada&host=one,two")).toBe(hosts)
        expect(yield* of("postgres://ada:pass-word@one/shop?sslmode=verify-full&sslcert=/a.pem")).toBe(
          "DATABASE_URL has the parameter sslcert, which has no effect here: remove it"
        )
        for (const mode of ["", "sslmode=disable&", "sslmode=prefer&"]) {
          expect(yield* of(`postgres://ada:pass-word@one/shop?${mode}sslrootcert=/a.pem`)).toBe(
            "DATABASE_URL has sslrootcert, which has an effect only with sslmode=verify-full"
          )
        }
        expect(yield* of("postgres://ada:pass-word@one/shop?sslmode=verify-full&sslrootcert=/none/a.pem")).toBe(
          "DATABASE_URL has sslrootcert, and the file /none/a.pem cannot be read (ENOENT)"
        )
        expect(yield* of("postgres://ada:pass/word@one:port/shop")).toMatch(/^DATABASE_URL is not a URL: /)
        const { databaseUrl } = yield* read({
          DATABASE_URL: "postgres://ada:pass,word@one:5433/shop?connect_timeout=3"
        })
        expect(databaseUrl).not.toBeNull()
      })
  )

  it.effect("Public URL is asked for where the host is not loopback", () =>
    Effect.gen(function* () {
      const urlAt = (env: Record<string, string>) => Effect.map(read(env), ({ publicUrl }) => publicUrl)
      expect(yield* urlAt({})).toBe("http://localhost:8080")
      expect(yield* urlAt({ HOST: "::1", PORT: "80" })).toBe("http://localhost:80")
      for (const HOST of ["0.0.0.0", "::", "10.0.0.5", "gateway.internal"]) {
        expect(yield* refusal({ HOST })).toBe(
          `PUBLIC_URL is needed where HOST is not loopback (${HOST}): set it to the URL by which others reach the gateway, such as https://gateway.example.com`
        )
      }
      for (const PUBLIC_URL of ["ftp://hooks.example.com", "https://hooks.example.com/?a=1"]) {
        expect(yield* refusal({ PUBLIC_URL })).toBe("PUBLIC_URL must be an http or https URL without a query")
      }
      expect(yield* urlAt({ HOST: "0.0.0.0", PUBLIC_URL: "https://hooks.example.com/" })).toBe(
        "https://hooks.example.com"
      )
    })
  )

  it.effect("Setting TIDEGATE_API_ORIGINS refuses an unknown origin and lists the known ones", () =>
    Effect.gen(function* () {
      for (const origin of ["https://api.slack.com", "http://slack.com", "https://slack.com:444"]) {
        const message = yield* refusal({ TIDEGATE_API_ORIGINS: `${origin}=http://127.0.0.1:9000` })
        expect(message).toContain(`TIDEGATE_API_ORIGINS names ${origin}, which the gateway does not call`)
        for (const known of knownOrigins) expect(message).toContain(known)
      }
      expect(yield* refusal({ TIDEGATE_API_ORIGINS: "https://slack.com" })).toContain("must be pairs")
    })
  )

  it.effect("Setting TIDEGATE_SENDER_DOMAINS takes domains and refuses anything else", () =>
    Effect.gen(function* () {
      expect((yield* read({})).senderDomains.size).toBe(0)
      const { senderDomains } = yield* read({ TIDEGATE_SENDER_DOMAINS: "service.example, Mail.example" })
      expect([...senderDomains]).toEqual(["service.example", "mail.example"])
      for (const wrong of ["a@service.example", "https://service.example", "service", "a/b.example", "x.example:25"]) {
        expect(yield* refusal({ TIDEGATE_SENDER_DOMAINS: wrong })).toContain("must be domains")
      }
    })
  )

  it.effect("Setting TIDEGATE_OIDC_CLIENT_SECRET needs an issuer", () =>
    Effect.gen(function* () {
      const issuer = { TIDEGATE_OIDC_ISSUER: "https://id.example.com", TIDEGATE_OIDC_AUDIENCE: "dashboard" }
      expect((yield* read(issuer)).signIn.clientSecret).toBeNull()
      const { signIn } = yield* read({ ...issuer, TIDEGATE_OIDC_CLIENT_SECRET: "a-secret" })
      expect(Redacted.value(signIn.clientSecret!)).toBe("a-secret")
      const said = yield* refusal({ TIDEGATE_OIDC_CLIENT_SECRET: "a-secret" })
      expect(said).toContain("needs TIDEGATE_OIDC_ISSUER")
      expect(said).not.toContain("a-secret")
    })
  )

  it.effect("Settings SMTP_URL and SMTP_FROM name a mail server and a sender, and need each other", () =>
    Effect.gen(function* () {
      expect((yield* read({})).mail).toBeNull()
      const url = "smtps://me:pass%40word@mail.example.com:465"
      const { mail } = yield* read({ SMTP_URL: url, SMTP_FROM: "alerts@example.com" })
      expect([Redacted.value(mail!.url), mail!.from]).toEqual([url, "alerts@example.com"])
      expect(yield* refusal({ SMTP_URL: url })).toContain("need each other")
      expect(yield* refusal({ SMTP_FROM: "alerts@example.com" })).toContain("need each other")
      for (const wrong of [
        "mail.example.com",
        "http://mail.example.com",
        "smtp://",
        "smtp://u:pass-word@a/b",
        "smtp://a?x=pass-word"
      ]) {
        const said = yield* refusal({ SMTP_URL: wrong, SMTP_FROM: "alerts@example.com" })
        expect(said).toContain("SMTP_URL must be")
        expect(said).not.toContain("pass-word")
      }
      for (const wrong of ["alerts", "Alerts <alerts@example.com>", "a@example.com, b@example.com", "a@b"]) {
        expect(yield* refusal({ SMTP_URL: url, SMTP_FROM: wrong })).toContain("SMTP_FROM must be")
      }
    })
  )

  it.effect("Setting TIDEGATE_WORKFLOW_CONCURRENCY takes whole numbers from 1 to 1000", () =>
    Effect.gen(function* () {
      expect((yield* read({})).workflowConcurrency).toBe(10)
      expect((yield* read({ TIDEGATE_WORKFLOW_CONCURRENCY: "1000" })).workflowConcurrency).toBe(1_000)
      for (const wrong of ["0", "1001", "2.5", "many"]) {
        yield* Effect.flip(read({ TIDEGATE_WORKFLOW_CONCURRENCY: wrong }))
      }
    })
  )

  it.effect("Setting TIDEGATE_INGRESS_URL must have another host than the public URL", () =>
    Effect.gen(function* () {
      const env = { PUBLIC_URL: "https://api.example.com/", TIDEGATE_INGRESS_URL: "https://hooks.example.com/in/" }
      expect(yield* read(env)).toMatchObject({
        publicUrl: "https://api.example.com",
        ingressUrl: "https://hooks.example.com/in"
      })
      expect((yield* read({})).ingressUrl).toBeNull()
      const same = { ...env, TIDEGATE_INGRESS_URL: "http://API.example.com/e" }
      expect(yield* refusal(same)).toContain("must have another host than PUBLIC_URL")
      expect(yield* refusal({ TIDEGATE_INGRESS_URL: "ftp://hooks.example.com" })).toContain("http or https")
    })
  )

  it.effect("Setting TIDEGATE_TRUSTED_PROXIES takes networks and refuses to trust every address", () =>
    Effect.gen(function* () {
      const { trustedProxies } = yield* read({ TIDEGATE_TRUSTED_PROXIES: "10.0.0.0/8, fd00::/8, 192.0.2.1" })
      expect(["10.1.2.3", "fd00::1", "192.0.2.1", "192.0.2.2"].map((ip) => trustedProxies.trusts(ip))).toEqual([
        true,
        true,
        true,
        false
      ])
      expect((yield* read({})).trustedProxies.trusts("127.0.0.1")).toBe(false)
      for (const wrong of ["0.0.0.0/0", "proxy.example", "10.0.0.0/8, all"]) {
        expect(yield* refusal({ TIDEGATE_TRUSTED_PROXIES: wrong })).toContain("TIDEGATE_TRUSTED_PROXIES must be")
      }
    })
  )

  it.effect("Setting TIDEGATE_CORS_ORIGINS takes exact origins and refuses anything else", () =>
    Effect.gen(function* () {
      expect((yield* read({})).corsOrigins.size).toBe(0)
      const { corsOrigins } = yield* read({ TIDEGATE_CORS_ORIGINS: "https://App.example.com, http://localhost:5173/" })
      expect([...corsOrigins]).toEqual(["https://app.example.com", "http://localhost:5173"])
      for (const wrong of [
        "*",
        "https://*.example.com",
        "app.example.com",
        "https://a.example/path",
        "null",
        "ftp://a.example"
      ]) {
        expect(yield* refusal({ TIDEGATE_CORS_ORIGINS: wrong })).toContain(`"${wrong}" is none`)
      }
    })
  )

  it.effect("Loop settings limit the hops and the descendants of a request", () =>
    Effect.gen(function* () {
      expect((yield* read({})).loops).toEqual({ hops: 10, descendants: 1_000 })
      const env = { TIDEGATE_LOOP_HOPS: "3", TIDEGATE_LOOP_DESCENDANTS: "50" }
      expect((yield* read(env)).loops).toEqual({ hops: 3, descendants: 50 })
      yield* Effect.flip(read({ TIDEGATE_LOOP_HOPS: "0" }))
    })
  )

  it("Known origins include every origin that a destination type asks for", () => {
    for (const row of connectors) {
      const asked: Array<string> = []
      const settings = Result.getOrThrow(settingsOf(row, (row.example["config"] ?? {}) as Config))
      row.open(settings, { headers: {}, signing: null, settings: {} }, (origin) => {
        asked.push(origin)
        return origin
      })
      for (const origin of asked) expect(knownOrigins).toContain(origin)
    }
  })
})
