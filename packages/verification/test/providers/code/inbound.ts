import { expect } from "@effect/vitest"
import { readFileSync } from "node:fs"
import type { Certificates, Check, InboundRequest, ProviderAuth } from "@tidegate/verification/Provider"
import { codeProviders } from "../../../src/providers/code.ts"

/** 2030-01-01T00:00:00Z, when the certificates of the fixtures are in force. */
export const now = 1_893_456_000

export const bytes = (text: string): Uint8Array => Buffer.from(text, "utf8")

export const inbound = (
  request: Omit<Partial<InboundRequest>, "body"> & { readonly body?: string | Uint8Array }
): InboundRequest => {
  const { body = "", url = "https://hooks.example/src_1" } = request
  const start = url.indexOf("?")
  return {
    method: "POST",
    headers: {},
    query: start < 0 ? "" : url.slice(start + 1),
    nowSeconds: now,
    ...request,
    url,
    body: typeof body === "string" ? bytes(body) : body
  }
}

const noCertificates: Certificates = () => undefined

const compileOf = (type: string) => {
  const provider = codeProviders.find(({ types }) => new Set<string>(types).has(type))
  const verification = provider?.verification
  return verification?.kind === "code" ? verification.compile : expect.fail(`${type} is not verified by code`)
}

export const checkOf = (type: string, auth: ProviderAuth, certificates = noCertificates): Check => {
  const check = compileOf(type)(auth, certificates)
  return check ?? expect.fail(`the settings of ${type} do not compile`)
}

export const hasCheck = (type: string, auth: ProviderAuth): boolean => compileOf(type)(auth, noCertificates) !== null

/** Why the setting `name` of the provider cannot have `value`. */
export const problemOf = (type: string, name: string, value: string): string | null => {
  const provider = codeProviders.find(({ types }) => new Set<string>(types).has(type))
  const setting = provider?.settings.find((setting) => setting.name === name)
  expect(setting).toBeDefined()
  return setting?.problem?.(value) ?? null
}

export const fixture = (name: string): string =>
  readFileSync(new URL(`../../fixtures/code/${name}`, import.meta.url), "utf8")

/** The same text with one character in the middle replaced by another of the same alphabet. */
export const changed = (text: string): string => {
  const at = text.length >> 1
  return `${text.slice(0, at)}${text[at] === "a" ? "b" : "a"}${text.slice(at + 1)}`
}
