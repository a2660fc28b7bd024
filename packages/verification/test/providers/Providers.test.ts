import { describe, expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { createHmac } from "node:crypto"
import { maxAheadSeconds } from "../../src/SignatureScheme.ts"
import { providerOf, providers } from "@tidegate/verification/Providers"
import { nameOf, requestOf, rowOf, signatureOf, vectors, verdict, withHeader } from "./Vectors.ts"
import type { Vector } from "./Vectors.ts"

const flipped = (text: string, at: number): Buffer => {
  const bytes = Buffer.from(text, "utf8")
  bytes[at]! ^= 1
  return bytes
}

/** The same JSON, or text, in other bytes. */
const rewritten = (body: string): string => {
  try {
    const again = JSON.stringify(JSON.parse(body))
    return again === body ? JSON.stringify(JSON.parse(body), null, 2) : again
  } catch {
    return `${body}\n`
  }
}

const wrongAuth = (vector: Vector) =>
  Object.fromEntries(
    Object.entries(vector.auth).map(([name, value]) =>
      // A changed first character after any whsec_ leaves base64 what it is.
      name === "webhook_secret_key" || name === "api_key" || name === "password"
        ? [name, value.replace(/^(whsec_)?(.)/, (_, prefix = "", first) => `${prefix}${first === "A" ? "B" : "A"}`)]
        : [name, value]
    )
  )

const tableRows = providers.filter(({ verification }) => verification.kind !== "code")

describe("Provider table", () => {
  it("The provider table names each type once", () => {
    const types = providers.flatMap((provider) => provider.types)
    expect(new Set(types).size).toBe(types.length)
    for (const provider of providers) for (const type of provider.types) expect(providerOf(type)).toBe(provider)
    expect(providerOf("WEBHOOK")).toBeUndefined()
    expect(providerOf("toString")).toBeUndefined()
  })

  it("The provider table has a genuine request for every type that data verifies", () => {
    const covered = new Set(vectors.map(({ type }) => type))
    expect(tableRows.flatMap(({ types }) => types).filter((type) => !covered.has(type))).toStrictEqual([])
  })

  it("Legacy SHA-1 headers of providers are never accepted", () => {
    // Legacy SHA-1 headers that these providers send, or sent, beside the ones in the table.
    for (const [type, header, prefix, encoding] of [
      ["GITHUB", "x-hub-signature", "sha1=", "hex"],
      ["META", "x-hub-signature", "sha1=", "hex"],
      ["SQUARE", "x-square-signature", "", "base64"]
    ] as const) {
      const vector = vectors.find((vector) => vector.type === type)!
      const { body, url } = vector.request
      const content = type === "SQUARE" ? url + body : body
      const legacy = createHmac("sha1", vector.auth["webhook_secret_key"]!).update(content).digest(encoding)
      expect(verdict(vector, { headers: { [header]: prefix + legacy } }), type).toBe("failed")
    }
  })
})

describe.each(vectors.map((vector) => [nameOf(vector), vector] as const))("Requests of %s", (_, vector) => {
  const { request } = vector

  it("A genuine provider request is verified", () => {
    expect(verdict(vector)).toBe("verified")
  })

  it("A provider request is refused with another secret", () => {
    expect(wrongAuth(vector)).not.toStrictEqual(vector.auth)
    expect(verdict(vector, {}, wrongAuth(vector))).toBe("failed")
  })

  it("A provider request needs each of its headers exactly once", () => {
    for (const [name, value] of Object.entries(request.headers)) {
      expect(verdict(vector, withHeader(vector, name, undefined)), `${name} is missing`).toBe("failed")
      expect(verdict(vector, withHeader(vector, name, "")), `${name} is empty`).toBe("failed")
      expect(verdict(vector, withHeader(vector, name, [value, value])), `${name} is there twice`).toBe("failed")
      expect(verdict(vector, withHeader(vector, name, [value])), `${name} is a list`).toBe("failed")
    }
    expect(verdict(vector, { headers: {} })).toBe("failed")
  })
})

const signed = vectors.flatMap((vector) => {
  const signature = signatureOf(vector)
  return signature === null ? [] : [[nameOf(vector), vector, signature] as const]
})

describe.each(signed)("Signature of %s", (_, vector, { header, scheme, value }) => {
  const { request } = vector
  const isHex = scheme.encoding === "hex"
  // The tail of an item, so that no prefix is taken for digits.
  const digits = isHex ? /(?<![0-9a-z])[0-9a-f]{40,128}/g : /(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{27,43}=/g
  const withSignature = (change: (digits: string) => string) => {
    const changed = value.replaceAll(digits, change)
    expect(changed).not.toBe(value)
    return verdict(vector, withHeader(vector, header, changed))
  }

  it("A provider signature does not verify another body", () => {
    const length = Buffer.byteLength(request.body)
    for (const at of [0, length >> 1, length - 1]) {
      expect(verdict(vector, { body: flipped(request.body, at) }), `byte ${at}`).toBe("failed")
    }
    expect(verdict(vector, { body: Buffer.from(rewritten(request.body)) })).toBe("failed")
    expect(verdict(vector, { body: Buffer.from(`${request.body} `) })).toBe("failed")
    expect(verdict(vector, { body: new Uint8Array() })).toBe("failed")
  })

  it("A provider signature is refused in another encoding, in part, or with a wrong length", () => {
    const other = isHex ? "base64" : "hex"
    const recoded = (text: string) => Buffer.from(text, scheme.encoding).toString(other)
    expect(withSignature(recoded)).toBe("failed")
    expect(withSignature((text) => text.slice(0, -1).slice(1))).toBe("failed")
    expect(withSignature((text) => text.slice(0, text.length >> 1))).toBe("failed")
    expect(withSignature((text) => text + text)).toBe("failed")
    expect(withSignature((text) => `${text}0`)).toBe("failed")
    expect(withSignature(() => "")).toBe("failed")
  })

  it("A hex signature may be in capitals, and base64 may not", () => {
    expect(withSignature((text) => text.toUpperCase())).toBe(isHex ? "verified" : "failed")
    if (!isHex) expect(withSignature((text) => text.replaceAll("=", ""))).toBe("verified")
  })

  it("A provider signature of another algorithm with the same key is refused", () => {
    const key = Buffer.from(vector.auth["webhook_secret_key"]!, "utf8")
    const others = (["md5", "sha1", "sha256", "sha512"] as const).filter((name) => name !== scheme.algorithm)
    for (const algorithm of others) {
      const forged = createHmac(algorithm, key).update(request.body).digest(scheme.encoding)
      expect(
        withSignature(() => forged),
        algorithm
      ).toBe("failed")
    }
  })

  if (scheme.prefix !== "")
    it("A provider signature needs its prefix", () => {
      expect(verdict(vector, withHeader(vector, header, value.replaceAll(scheme.prefix, "")))).toBe("failed")
      const other = value.replaceAll(scheme.prefix, scheme.prefix.replace(/^./, "x"))
      expect(verdict(vector, withHeader(vector, header, other))).toBe("failed")
    })

  if (scheme.separator !== null)
    it("Any of several provider signatures may match, at any position", () => {
      const separator = scheme.separator!
      const item = value.split(separator).find((part) => part.trim().startsWith(scheme.prefix)) ?? ""
      const foreign = item.replaceAll(digits, (text) => text.replaceAll(/[0-9A-Za-z]/g, (c) => (c === "0" ? "1" : "0")))
      expect(foreign).not.toBe(item)
      for (const list of [
        [foreign, value],
        [value, foreign],
        [foreign, value, foreign],
        [value, `${scheme.prefix}short`, "x=1"]
      ]) {
        expect(verdict(vector, withHeader(vector, header, list.join(separator)))).toBe("verified")
      }
      const alone = value.replace(item.trim(), foreign.trim())
      expect(verdict(vector, withHeader(vector, header, alone))).toBe("failed")
    })

  if (scheme.separator === null && !scheme.header.includes("{n}"))
    it("A single provider signature may not be a list", () => {
      for (const joined of [`${value}, ${value}`, `${value},${value}`, `${value} ${value}`]) {
        expect(verdict(vector, withHeader(vector, header, joined))).toBe("failed")
      }
    })

  if (/\{(?:url|decodedUrl)\}/.test(scheme.content))
    it("A provider signature covers the URL", () => {
      for (const url of [`${request.url}&x=1`, `${request.url}/`, request.url.replace("https:", "http:"), ""]) {
        expect(verdict(vector, { url }), url).toBe("failed")
      }
    })

  if (scheme.content.includes("{method}"))
    it("A provider signature covers the method", () => {
      expect(verdict(vector, { method: "PUT" })).toBe("failed")
    })

  const rule = scheme.timestamp
  if (rule !== null)
    describe("Timestamp of a provider request", () => {
      it("A provider timestamp must be within the tolerance, in both directions", () => {
        const { toleranceSeconds } = rule
        const ahead = Math.min(toleranceSeconds, maxAheadSeconds)
        const at = (seconds: number) => verdict(vector, { nowSeconds: request.now + seconds })
        for (const seconds of [toleranceSeconds - 1, 1 - ahead, 0]) {
          expect(at(seconds), `${seconds} s`).toBe("verified")
        }
        for (const seconds of [toleranceSeconds + 2, -ahead - 2, 86_400, -86_400, Number.NaN]) {
          expect(at(seconds), `${seconds} s`).toBe("failed")
        }
      })

      it("A provider timestamp is signed", () => {
        const { from } = rule
        const shown = "header" in from ? request.headers[from.header]! : "itemPrefix" in from ? value : request.body
        // A digit of the last seconds: still near to now.
        const later = shown.replace(
          /(1[0-9]{8})([0-9])|(:[0-9])([0-9])(?=[.Z])/,
          (_, a = "", b = "", c = "", d = "") => `${a}${c}${(Number(b || d) + 1) % 10}`
        )
        expect(later).not.toBe(shown)
        const changed =
          "header" in from
            ? withHeader(vector, from.header, later)
            : "itemPrefix" in from
              ? withHeader(vector, header, later)
              : { body: Buffer.from(later) }
        expect(verdict(vector, changed)).toBe("failed")
      })

      it("A provider timestamp has only one valid spelling", () => {
        const { from } = rule
        if ("bodyMember" in from) return
        const of = (text: string) =>
          "header" in from
            ? withHeader(vector, from.header, text)
            : withHeader(vector, header, value.replace(/\d{10,}/, text))
        const now = String(request.now)
        for (const text of [
          "",
          "now",
          "abc",
          `+${now}`,
          `-${now}`,
          ` ${now}x`,
          `${now}.0`,
          "1e9",
          "0x65",
          "Infinity"
        ]) {
          expect(verdict(vector, of(text)), text).toBe("failed")
        }
      })
    })
})

it("Timestamp tolerances are those that providers document, and otherwise five minutes", () => {
  const found = tableRows.flatMap(({ types, verification }) =>
    verification.kind === "scheme"
      ? verification.schemes.map(({ timestamp }) => [types[0], timestamp?.toleranceSeconds] as const)
      : []
  )
  expect(found.filter(([, seconds]) => seconds !== undefined && seconds !== 300)).toStrictEqual([
    ["ELEVENLABS", 1800],
    ["ZOOM", 5400],
    ["TWITCH", 600],
    ["LINEAR", 60]
  ])
  expect(found.filter(([, seconds]) => seconds === 300).length).toBe(14)
})

describe("ZENDESK", () => {
  it("A Zendesk timestamp is a date and time with a zone, and no other text that can be parsed", () => {
    const vector = vectors.find(({ type }) => type === "ZENDESK")!
    const sign = (timestamp: string) => ({
      headers: {
        "x-zendesk-webhook-signature-timestamp": timestamp,
        "x-zendesk-webhook-signature": createHmac("sha256", vector.auth["webhook_secret_key"]!)
          .update(timestamp + vector.request.body)
          .digest("base64")
      }
    })
    for (const timestamp of ["2023-11-14T22:13:20Z", "2023-11-14T23:13:20.5+01:00"]) {
      expect(verdict(vector, sign(timestamp)), timestamp).toBe("verified")
    }
    for (const timestamp of [
      "2023-11-14T22:13:20",
      "2023-11-14 22:13:20Z",
      "2023-11-14T22:13Z",
      "Tue, 14 Nov 2023 22:13:20 GMT",
      "2023-13-45T22:13:20Z",
      "1700000000",
      "2023-11-14T22:13:20Z "
    ]) {
      expect(verdict(vector, sign(timestamp)), timestamp).toBe("failed")
    }
  })
})

describe("LINEAR", () => {
  const vector = vectors.find(({ type }) => type === "LINEAR")!
  const sign = (body: string) => ({
    body: Buffer.from(body),
    headers: { "linear-signature": createHmac("sha256", "lin_wh_secret").update(body).digest("hex") }
  })

  it("A Linear timestamp is a number in the signed JSON object", () => {
    expect(verdict(vector, sign('{"webhookTimestamp":1700000000000}'))).toBe("verified")
    for (const body of [
      "{}",
      "",
      "null",
      "7",
      "[1700000000000]",
      "not json",
      '{"webhookTimestamp":"1700000000000"}',
      '{"webhookTimestamp":null}',
      '{"webhookTimestamp":-1700000000000}',
      '{"webhookTimestamp":1700000000000.5}',
      '{"webhookTimestamp":1e300}',
      '{"webhookTimestamp":1700000000}',
      '{"data":{"webhookTimestamp":1700000000000}}',
      '{"__proto__":{"webhookTimestamp":1700000000000}}'
    ]) {
      expect(verdict(vector, sign(body)), body).toBe("failed")
    }
  })
})

describe("DOCUSIGN", () => {
  const vector = vectors.find(({ type }) => type === "DOCUSIGN")!
  const ours = vector.request.headers["x-docusign-signature-2"]!
  const foreign = vector.request.headers["x-docusign-signature-1"]!

  it("DocuSign signatures may be in any numbered header, and each of them is checked", () => {
    const numbered = (values: ReadonlyArray<string>) => ({
      headers: Object.fromEntries(values.map((value, index) => [`x-docusign-signature-${index + 1}`, value]))
    })
    expect(verdict(vector, numbered([ours]))).toBe("verified")
    expect(verdict(vector, numbered([ours, foreign]))).toBe("verified")
    expect(verdict(vector, numbered([...Array<string>(99).fill(foreign), ours]))).toBe("verified")
    expect(verdict(vector, numbered([...Array<string>(100).fill(foreign), ours]))).toBe("failed")
    expect(verdict(vector, numbered([foreign]))).toBe("failed")
    expect(verdict(vector, { headers: { "x-docusign-signature-2": ours } })).toBe("failed")
    expect(verdict(vector, { headers: { "x-docusign-signature": ours } })).toBe("failed")
  })
})

describe("BUILDKITE", () => {
  it("A Buildkite token does not make up for a wrong signature, and no other header may carry it", () => {
    const vector = vectors.find(({ type }) => type === "BUILDKITE")!
    const token = "buildkite-token"
    const of = (headers: Record<string, string | ReadonlyArray<string>>) => verdict(vector, { headers })
    expect(of({ "x-buildkite-token": token })).toBe("verified")
    expect(of({ "x-buildkite-token": token, "x-buildkite-signature": "timestamp=1,signature=00" })).toBe("failed")
    expect(of({ "x-buildkite-token": token, "x-buildkite-signature": "" })).toBe("failed")
    expect(of({ "x-buildkite-token": `${token} ` })).toBe("failed")
    expect(of({ authorization: token })).toBe("failed")
  })
})

describe("Presented provider secrets", () => {
  const presented = vectors.filter((vector) => signatureOf(vector) === null)

  it.each(presented.map((vector) => [nameOf(vector), vector] as const))("%s requires its whole secret", (_, vector) => {
    const name = Object.keys(vector.request.headers)[0]!
    const value = vector.request.headers[name]!
    for (const other of [
      // Two, because the padding of Basic credentials may be missing.
      value.slice(0, -2),
      value.slice(1),
      `${value}0`,
      ` ${value}`,
      `Bearer ${value}`,
      value.toUpperCase().replace(/^./, "x"),
      `${value}, ${value}`
    ]) {
      expect(verdict(vector, withHeader(vector, name, other)), other).toBe("failed")
    }
    expect(verdict(vector, { headers: {}, query: `${name}=${value}`, url: `https://x/?${name}=${value}` })).toBe(
      "failed"
    )
  })
})

describe("Random provider requests", () => {
  it.prop("No headers make a provider check throw", { text: Schema.String, body: Schema.String }, ({ body, text }) => {
    for (const vector of vectors) {
      const headers = Object.fromEntries(Object.keys(vector.request.headers).map((name) => [name, text]))
      expect(verdict(vector, { headers, body: Buffer.from(body) })).toBe("failed")
    }
  })
})

describe("Consistency of the provider table", () => {
  it.each(tableRows.map((row) => [row.types.join(", "), row] as const))("Provider row %s is consistent", (_, row) => {
    const { verification } = row
    if (verification.kind !== "scheme") return
    for (const scheme of verification.schemes) {
      expect(scheme.header).toBe(scheme.header.toLowerCase())
      // Whoever signs a timestamp is held to it.
      expect(!scheme.content.includes("{timestamp}") || scheme.timestamp !== null).toBe(true)
      expect(scheme.content).toContain("{body}")
    }
    const vector = vectors.find(({ type }) => type === row.types[0])!
    expect(rowOf(vector)).toBe(row)
    expect(requestOf(vector).body.length).toBeGreaterThan(0)
  })
})
