import { describe, expect } from "vitest"
import { newId } from "@tidegate/model/Ids"
import type { AnyResource } from "@tidegate/resources/Resource"
import { resources } from "@tidegate/resources/Resources"
import type { Body } from "../support/Gateway.ts"
import { it } from "../support/it.ts"
import { fill } from "./openapi/Present.ts"

/** Whatever is declared as a resource has its routes, its actor and its store, and is written and read as its example says. */

const declared: ReadonlyArray<AnyResource> = resources

it("Resource names, paths and id prefixes are unique", () => {
  for (const member of ["name", "plural", "prefix"] as const) {
    expect(new Set(declared.map((resource) => resource[member])).size).toBe(declared.length)
  }
  for (const { prefix } of declared) expect(prefix).toMatch(/^[a-z]{2,3}_$/)
})

describe.each(declared.map((resource) => [resource.plural, resource] as const))("Resource %s", (plural, resource) => {
  const none = newId(resource.prefix, 1_700_000_000_000)
  const notFound = { status: 404, body: { code: "NOT_FOUND", data: { resource_type: resource.name, id: none } } }

  it("A resource's list answers, and an unknown id is not found", async ({ gateway }) => {
    expect(await gateway.call("GET", `/${plural}`)).toMatchObject({ status: 200, body: { models: expect.any(Array) } })
    expect(await gateway.call("GET", `/${plural}/${none}`)).toMatchObject(notFound)
  })

  it("A resource's actor accepts every command", async ({ gateway }) => {
    const writer = await gateway.writer(resource)
    for (const method of ["PATCH", "PUT"]) {
      expect(await gateway.call(method, `/${plural}/${none}`, resource.example.body, writer)).toMatchObject(notFound)
    }
    for (const to of resource.switches) {
      for (const method of ["PUT", "POST"]) {
        expect(await gateway.call(method, `/${plural}/${none}/${to}`, undefined, writer)).toMatchObject(notFound)
      }
    }
    expect(await gateway.call("DELETE", `/${plural}/${none}`, undefined, writer)).toMatchObject(notFound)
  })

  it("A resource refuses an invalid body", async ({ gateway }) => {
    const writer = await gateway.writer(resource)
    for (const method of ["POST", "PUT"]) {
      const answer = await gateway.call(method, `/${plural}`, { name: 1 }, writer)
      // A filter's name has an error of its own.
      const [code, message] =
        resource.name === "filter"
          ? ["INVALID_FILTER_NAME", expect.any(String)]
          : ["VALIDATION_ERROR", "must be a string"]
      expect(answer).toMatchObject({ status: 400, body: { code } })
      expect(answer.body.data.fields).toContainEqual({ path: "name", message })
    }
  })
})

/** Those whose example names at most a source and a destination. */
const tried = declared.filter(({ name }) => name !== "workflow")

it.for(tried.map((resource) => [resource.plural, resource] as const))(
  "The resources %s can be created, listed, changed, switched and deleted with their example",
  async ([plural, resource], { gateway }) => {
    const { deleted, example, name, switches } = resource
    const writer = await gateway.writer(resource)
    /** A call that has to succeed. */
    const must = async (method: string, path: string, body?: unknown): Promise<Body> => {
      const answer = await gateway.call(method, path, body, writer)
      expect(answer.status, `${method} ${path}`).toBe(
        method === "POST" && path === `/${plural}` ? (resource.created ?? 200) : 200
      )
      return answer.body
    }
    const ends = { src: (await gateway.source()).id, des: (await gateway.destination({}, "MOCK_API")).id }
    const written = Object.assign({}, fill(example.body, ends), { name: gateway.name(name) })
    const created = await must("POST", `/${plural}`, written)
    expect(Object.keys(created).sort()).toEqual(Object.keys(example.record).sort())
    const one = `/${plural}/${created.id}`
    expect(await must("GET", one)).toEqual(created)
    expect((await must("GET", `/${plural}?name=${written.name}`)).models).toHaveLength(1)
    expect(await gateway.call("POST", `/${plural}`, written, writer)).toMatchObject({
      status: 409,
      body: { code: "RESOURCE_ALREADY_EXISTS", data: { id: created.id, resource_type: name } }
    })
    expect(await must("PATCH", one, example.patch)).toMatchObject({ id: created.id, name: written.name })
    expect(await must("PUT", `/${plural}`, written)).toMatchObject({ id: created.id })
    for (const to of switches) expect(await must("PUT", `${one}/${to}`)).toMatchObject({ id: created.id })
    const answer = await must("DELETE", one)
    expect(answer).toMatchObject({ id: created.id, deleted: true })
    expect(Object.keys(answer)).toEqual(["id", "deleted", ...Object.keys(deleted?.fields ?? {})])
    expect(await gateway.call("GET", one)).toMatchObject({ status: 404 })
  }
)
