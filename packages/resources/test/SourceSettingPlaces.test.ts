import { describe, expect, it } from "@effect/vitest"
import { Result, type Schema } from "effect"
import { providers } from "@tidegate/verification/Providers"
import { source } from "../src/Source.ts"
import { changed, created, faults } from "./written.ts"

/**
 * A setting that decides about verification and stands where it has no effect, or is not spelled as it is read. Made from
 * the provider table: each setting of each type, under each name that it has.
 */

const id = "src_01kaxg3j7qzfn8m4s2v6w9t5bc"

/** What is told of that input, by a create and by a change of an open source of that type. */
const told = (type: string, input: { readonly [name: string]: Schema.Json }): ReadonlyArray<ReadonlyArray<string>> => {
  const open = Result.getOrThrow(created(source, { name: "open", type, config: { auth_type: null } }))
  return [
    faults(created(source, { name: "a", type, ...input })),
    faults(changed(source, open, { type, ...input }, { id }))
  ]
}

const camel = (name: string): string => name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
const value = "a-value-0123456789"

const table = providers.flatMap(({ settings, types }) =>
  types.flatMap((type) =>
    settings.flatMap(({ aliases = [], name }) => [name, ...aliases].map((written) => [type, written, name] as const))
  )
)

it("The provider table has all 68 source types", () => {
  expect(new Set(table.map(([type]) => type)).size).toBe(68)
})

describe.each(table)("%s: %s (%s)", (type, written, name) => {
  it(`The setting ${written} of ${type} at a wrong level is reported with its right place`, () => {
    for (const given of [value, null, "", {}]) {
      for (const fields of told(type, { config: { [written]: given } })) {
        expect(fields).toContain(`config.${written}: belongs into config.auth.${written}`)
      }
      for (const fields of told(type, { [written]: given })) {
        expect(fields).toContain(`${written}: belongs into config.auth.${written}`)
      }
    }
  })

  it(`The setting ${written} of ${type} beside auth is reported with its right place`, () => {
    for (const fields of told(type, { config: { auth: {}, [written]: value } })) {
      expect(fields).toContain(`config.${written}: belongs into config.auth.${written}`)
    }
  })

  it(`The misspelled setting ${written} of ${type} is reported with its right name`, () => {
    const others = [camel(written), written.toUpperCase(), written.replaceAll("_", "-"), `${written}_`]
    for (const other of others.filter((other) => !table.some(([of, known]) => of === type && known === other))) {
      for (const given of [value, null]) {
        for (const fields of told(type, { config: { auth: { [other]: given } } })) {
          expect(fields.join("\n")).toMatch(new RegExp(`^config\\.auth\\.${other}: is written config\\.auth\\.`, "m"))
        }
      }
      if (table.some(([, known]) => known === other)) continue
      for (const fields of told(type, { config: { [other]: value } })) {
        expect(fields.join("\n")).toMatch(new RegExp(`^config\\.${other}: belongs into config\\.auth\\.`, "m"))
      }
      for (const fields of told(type, { [other]: value })) {
        expect(fields.join("\n")).toMatch(new RegExp(`^${other}: belongs into config\\.auth\\.`, "m"))
      }
    }
  })

  it(`The setting ${written} of ${type} is rejected if it is null, because it verifies nothing`, () => {
    for (const fields of told(type, { config: { auth: { [written]: null } } })) {
      expect(fields.join("\n")).toMatch(
        /^config\.auth(?:\.\w+)?: (?:is required|must hold exactly one|must not be null)/m
      )
    }
    expect(table.some(([of, , setting]) => of === type && setting === name)).toBe(true)
  })

  it(`An unknown member beside the setting ${written} of ${type} is rejected`, () => {
    for (const fields of told(type, { config: { auth: { [written]: value, something: value } } })) {
      expect(fields.join("\n")).toMatch(/^config\.auth\.something: is no setting of the type /m)
    }
  })
})

describe("Type that verifies without settings", () => {
  for (const type of ["ASANA", "NOTION", "AWS_SNS"]) {
    it(`A ${type} source needs no settings and accepts only its own`, () => {
      for (const config of [{}, { auth: {} }, { auth: null }]) {
        const made = Result.getOrThrow(created(source, { name: "a", type, config }))
        expect(made.config.auth_type, JSON.stringify(config)).toBe("HMAC")
      }
      for (const auth of [
        { something: value },
        { algorithm: null },
        { provider: null },
        { provider: "STRIPE" },
        { topicArn: value },
        { webhookSecretKey: value },
        { webhook_secret_key: null },
        { topic_arn: null }
      ]) {
        for (const auth_type of [undefined, "HMAC", "PROVIDER_SIGNATURE"]) {
          told(type, { config: { auth, ...(auth_type === undefined ? {} : { auth_type }) } })
        }
      }
    })
  }
})

describe("Names of auth and its type", () => {
  const cases: ReadonlyArray<readonly [Parameters<typeof told>[1], string]> = [
    [{ authType: "HMAC" }, "authType: belongs into config.auth_type"],
    [{ Auth: {} }, "Auth: belongs into config.auth"],
    [{ Type: "STRIPE" }, "Type: is written type"],
    [{ Config: { auth: {} } }, "Config: is written config"],
    [{ config: { authType: "HMAC" } }, "config.authType: is written config.auth_type"],
    [{ config: { "auth-type": "HMAC" } }, "config.auth-type: is written config.auth_type"],
    [{ config: { Auth: {} } }, "config.Auth: is written config.auth"],
    [{ config: { type: "STRIPE" } }, "config.type: belongs at the top, as type"],
    [{ config: { config: { auth: {} } } }, "config.config: belongs at the top, as config"],
    [{ config: { header_key: "x-s" } }, "config.header_key: belongs into config.auth.header_key"],
    [{ provider: "STRIPE" }, "provider: belongs into config.auth.provider"],
    [
      { config: { auth_type: "HMAC", auth: { secret: "k", auth_type: "HMAC" } } },
      "config.auth.auth_type: belongs into config.auth_type"
    ],
    [
      { config: { auth_type: "API_KEY", auth: { api_key: "k", headerKey: "x-s" } } },
      "config.auth.headerKey: is written config.auth.header_key"
    ],
    [
      { config: { auth_type: "BASIC_AUTH", auth: { username: "u", password: "p", realm: "r" } } },
      "config.auth.realm: is no setting of auth_type BASIC_AUTH: config.auth takes username, password"
    ]
  ]
  for (const [input, message] of cases) {
    it(`A misplaced or misspelled auth member is reported: ${message}`, () => {
      for (const fields of told("WEBHOOK", input)) expect(fields).toStrictEqual([message])
    })
  }

  it("The number of reported faults is bounded for a thousand misspelled settings", () => {
    const config = Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`secret${"_".repeat(n + 1)}`, "k"]))
    for (const fields of told("STRIPE", { config })) expect(fields).toHaveLength(20)
    for (const fields of told("STRIPE", { config: { auth: config } })) expect(fields.length).toBeLessThanOrEqual(21)
  })

  it("Unrelated unknown members stay ignored", () => {
    for (const input of [
      { labels: ["x"], config: { retention: 5, description: "x" } },
      { id: "x", team_id: "y" }
    ]) {
      Result.getOrThrow(created(source, { name: "a", ...input }))
    }
  })
})
