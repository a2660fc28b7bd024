import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import { generateKeyPairSync, X509Certificate } from "node:crypto"
import { settingsOf, shownSettings } from "@tidegate/connectors/Connectors"
import { Refusal } from "@tidegate/connectors/Connector"
import type { Config } from "@tidegate/connectors/Settings"
import { http } from "../src/Http.ts"
import { authority, fixture } from "../../egress/test/targets.ts"
import { factsOf } from "./Facts.ts"

const certificate = fixture("self-signed.pem")
const key = fixture("key.pem")
const url = "https://api.example.com/hooks"

const faults = (config: Config): ReadonlyArray<string> =>
  Result.match(settingsOf(http, config), {
    onSuccess: () => [],
    onFailure: (errors) => errors.map(({ message, path }) => `${path} ${message}`)
  })

const pem = (type: "rsa" | "ec", modulusLength = 2048): string =>
  (type === "rsa"
    ? generateKeyPairSync("rsa", { modulusLength })
    : generateKeyPairSync("ec", { namedCurve: "P-256" })
  ).privateKey.export({ type: "pkcs8", format: "pem" })

describe("Client certificate of an HTTP destination", () => {
  it("Certificate and key that belong together are accepted, and so is a chain, and authorities alone", () => {
    expect(faults({ url, client_certificate: certificate, client_key: key })).toEqual([])
    expect(faults({ url, client_certificate: certificate + authority, client_key: key })).toEqual([])
    expect(faults({ url, server_ca: authority })).toEqual([])
  })

  it.each([
    [{ client_certificate: certificate }, "config.client_key is required with client_certificate"],
    [{ client_key: key }, "config.client_certificate is required with client_key"],
    [
      { client_certificate: certificate, client_key: pem("ec") },
      "config.client_key does not belong to config.client_certificate (the first one, if it has several)"
    ],
    ...["no key", pem("rsa", 1024), certificate, key.replace("PRIVATE", "PUBLIC")].map(
      (client_key) =>
        [
          { client_certificate: certificate, client_key },
          "config.client_key must be a private key in PEM without a password: EC, Ed25519, or RSA of 2048 to 4096 bits"
        ] as const
    ),
    [
      { url: "http://api.example.com", server_ca: authority },
      "config.url must be https with client_certificate or server_ca"
    ]
  ] as const)("Settings that cannot work are refused when they are written: %#", (config, fault) => {
    expect(faults({ url, ...config })).toEqual([fault])
  })

  it("Read shows when the certificate expires, and no key", () => {
    const shown = shownSettings("HTTP", { url, client_certificate: certificate, client_key: key })
    expect(shown).toMatchObject({
      client_certificate: certificate,
      client_key: "****",
      client_certificate_expires_at: new X509Certificate(certificate).validToDate.toISOString()
    })
    expect(JSON.stringify(shown)).not.toContain(key.split("\n")[1])
    expect(shownSettings("HTTP", { url })).toMatchObject({ client_key: null, client_certificate_expires_at: null })
  })

  it("Deliveries have the certificate, and the same one has the same connections", () => {
    const message = { method: "POST", path: "", query: "", headers: {}, body: Buffer.from("{}") }
    const tlsOf = (config: Config) => {
      const settings = Result.getOrThrow(settingsOf(http, { url, ...config }))
      const sender = http.open(settings, { headers: {}, signing: null, settings: {} }, (origin) => origin)
      if (sender.kind !== "http") throw new Error("it sends by HTTP")
      const request = sender.prepare(message, factsOf(message))
      if (request instanceof Refusal) throw new Error(request.code)
      return request.tls
    }
    const own = { client_certificate: certificate, client_key: key }
    expect(tlsOf({})).toBeUndefined()
    expect(tlsOf(own)).toMatchObject({ identity: { certificate, key }, authorities: null })
    expect(tlsOf(own)!.id).toBe(tlsOf({ ...own, max_concurrency: 1 })!.id)
    expect(tlsOf({ ...own, server_ca: authority })!.id).not.toBe(tlsOf(own)!.id)
  })
})
