import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import type { ErrorCode } from "@tidegate/model/GatewayError"
import { editing, reading } from "@tidegate/model/Permission"
import { Warning } from "@tidegate/model/Warning"
import {
  type AnyResource,
  type Operation,
  type Said,
  type Switch,
  type SwitchOf,
  switches,
  typeName
} from "@tidegate/resources/Resource"
import { at } from "@tidegate/resources/ExampleIds"
import { teamLimits } from "@tidegate/resources/TeamLimits"
import { Authorization } from "./Authorization.ts"
import type { ResourceList } from "./Lists.ts"
import { type About, operation } from "./Operation.ts"
import * as Parameters from "./Parameters.ts"

/** The answer to a delete. */
export const Deleted = Schema.Struct({ id: Schema.String, deleted: Schema.Literal(true) }).annotate({
  identifier: "Deleted"
})

const Warnings = Schema.Array(Warning).annotate({
  description: "Problems that the write did not resolve. Absent if there are none"
})

/** What the calls on a resource have beyond its declaration. */
interface Special<Query extends Schema.Struct.Fields, Upsert> {
  readonly list: ResourceList<Query>
  /** What an upsert is written with, where that is not what a create is. */
  readonly upsert?: Upsert
}

interface Example {
  readonly body: Schema.JsonObject
  readonly patch: Schema.JsonObject
  readonly record: Schema.JsonObject
}

const article = (name: string): string => `${/^[aeiou]/.test(name) ? "an" : "a"} ${name}`

const defaults = ({ name, plural }: AnyResource) => ({
  list: {
    summary: `List ${plural}`,
    description: "Returns pages by cursor. A page may have fewer rows than its limit."
  },
  create: { summary: `Create ${article(name)}`, description: "The name must be unique in the team." },
  upsert: {
    summary: `Create ${article(name)}, or update the one with that name`,
    description: "Members that are left out keep their values."
  },
  retrieve: { summary: `Retrieve ${article(name)}`, description: "Returns the stored record." },
  update: { summary: `Update ${article(name)} in part`, description: "Members in the body replace the stored ones." },
  replace: { summary: `Replace ${article(name)}`, description: "Members that are left out get their defaults." },
  delete: { summary: `Delete ${article(name)}`, description: "The name can be used again." },
  switch: (to: string) => ({
    summary: `${typeName(to)} ${article(name)}`,
    description: "Repeating it changes nothing."
  })
})

type SwitchEndpoint<
  Identifier extends string,
  Method extends "PUT" | "POST",
  Plural extends string,
  Name extends string,
  Record extends Schema.Top
> = ReturnType<typeof switchEndpoint<Identifier, Method, Plural, Name, Record>>

const switchEndpoint = <
  const Identifier extends string,
  const Method extends "PUT" | "POST",
  Plural extends string,
  Name extends string,
  Record extends Schema.Top
>(
  identifier: Identifier,
  method: Method,
  plural: Plural,
  name: Name,
  record: Record
) =>
  HttpApiEndpoint.make(method)(identifier, `/${plural}/:id/${name}`, {
    params: Parameters.pathOf("source"),
    query: Parameters.onlyTeam,
    success: record
  })

type SwitchEndpoints<R extends AnyResource> = {
  [Name in SwitchOf<R>]:
    | SwitchEndpoint<Name, "PUT", R["plural"], Name, R["record"]>
    | SwitchEndpoint<`${Name}ByPost`, "POST", R["plural"], Name, R["record"]>
}[SwitchOf<R>]

/** A record with only the members that rows of a list have. */
const shownIn = (listed: Schema.Top, record: Example["record"]): Example["record"] => {
  const members = "fields" in listed ? (listed.fields as object) : record
  return Object.fromEntries(Object.entries(record).filter(([name]) => name in members))
}

/**
 * The API of a resource: list, create, upsert, retrieve, update by PATCH, update or replace by PUT, its switches by PUT and by
 * POST, delete; and its own further calls.
 */
export const groupOf = <
  R extends AnyResource,
  Query extends Schema.Struct.Fields,
  const Others extends ReadonlyArray<HttpApiEndpoint.Constraint> = readonly [],
  Upsert extends Schema.Top = R["write"]["described"]
>(
  resource: R,
  { list, upsert }: Special<Query, Upsert>,
  others?: Others
) => {
  const { errors, name } = resource
  const example: Example = resource.example
  const Name = typeName(name)
  const plural: R["plural"] = resource.plural
  const record: R["record"] = resource.record
  const listed: R["record"] = resource.listed ?? record
  // A resource may declare further members of a delete's answer.
  const deleted: typeof Deleted =
    resource.deleted === undefined
      ? Deleted
      : Schema.Struct({ ...Deleted.fields, ...resource.deleted.fields }).annotate({ identifier: `${Name}Deleted` })
  const write: R["write"]["described"] = resource.write.described
  const patch: R["patch"]["described"] = resource.patch.described
  const { edit = editing, read = reading } = resource.permissions ?? {}
  const said: { readonly [Name in Operation | Switch]?: Said } = resource.said ?? {}
  const general = defaults(resource)
  const about = (id: string, of: Operation, rest: Pick<About, "answer" | "body" | "errors" | "readBack">) =>
    operation({
      ...general[of],
      ...rest,
      ...said[of],
      id,
      permission: of === "list" || of === "retrieve" ? read : edit
    })

  // Warnings of a write stand beside the record.
  const answered: R["record"] =
    resource.warnings === undefined
      ? record
      : Schema.Struct({ ...record.fields, warnings: Schema.optionalKey(Warnings) }).annotate({
          identifier: `Written${Name}`,
          description: "The record, with warnings"
        })
  const written: ReadonlyArray<ErrorCode> = ["RESOURCE_ALREADY_EXISTS", ...(errors.write ?? [])]
  const made: ReadonlyArray<ErrorCode> = [...new Set([...written, teamLimits[resource.plural]!.code])]
  const found: ReadonlyArray<ErrorCode> = ["NOT_FOUND"]
  const one = {
    params: Parameters.pathOf(name, example.record["id"] as string),
    query: Parameters.onlyTeam,
    success: record
  }
  const changedOne = { ...one, success: answered }
  const whole = { query: Parameters.onlyTeam, payload: write, success: answered }
  const updated = {
    body: example.patch,
    answer: Object.assign({}, example.record, example.patch),
    errors: [...found, ...written]
  }

  const switched = resource.switches.flatMap((to: Switch) => {
    const { column, on } = switches[to]
    const shown = column in example.record ? Object.assign({}, example.record, { [column]: on ? at : null }) : {}
    const rest = { answer: shown, errors: [...found, ...(errors.switch?.[to] ?? [])] }
    const described = (suffix: string) =>
      operation({ ...general.switch(to), ...rest, ...said[to], id: `${to}${Name}${suffix}`, permission: edit })
    return [
      HttpApiEndpoint.put(to, `/${plural}/:id/${to}`, one).annotateMerge(described("")),
      HttpApiEndpoint.post(`${to}ByPost`, `/${plural}/:id/${to}`, one).annotateMerge(described("ByPost"))
    ]
  }) as ReadonlyArray<SwitchEndpoints<R>>

  const updateByPut = HttpApiEndpoint.put("updateByPut", `/${plural}/:id`, {
    ...changedOne,
    payload: patch
  }).annotateMerge(about(`update${Name}ByPut`, "update", updated))
  const replace = HttpApiEndpoint.put("replace", `/${plural}/:id`, { ...changedOne, payload: write }).annotateMerge(
    about(`replace${Name}`, "replace", {
      body: example.body,
      answer: example.record,
      errors: [...found, ...written]
    })
  )
  const put: typeof updateByPut | typeof replace = resource.replace === undefined ? updateByPut : replace

  return HttpApiGroup.make(plural)
    .add(
      HttpApiEndpoint.get("list", `/${plural}`, {
        query: list.query,
        success: list.answer(listed)
      }).annotateMerge(
        about(`list${typeName(plural)}`, "list", {
          answer: list.example(shownIn(listed, example.record)),
          errors: ["INVALID_CURSOR"]
        })
      ),
      HttpApiEndpoint.post("create", `/${plural}`, {
        ...whole,
        success: resource.created === undefined ? answered : (answered.pipe(HttpApiSchema.status(201)) as typeof record)
      }).annotateMerge(
        about(`create${Name}`, "create", {
          readBack: true,
          body: example.body,
          answer: example.record,
          errors: made
        })
      ),
      HttpApiEndpoint.put("upsert", `/${plural}`, {
        ...whole,
        payload: upsert ?? write
      }).annotateMerge(
        about(`upsert${Name}`, "upsert", {
          body: example.body,
          answer: example.record,
          errors: made
        })
      ),
      HttpApiEndpoint.get("retrieve", `/${plural}/:id`, one).annotateMerge(
        about(`get${Name}`, "retrieve", { answer: example.record, errors: found })
      ),
      HttpApiEndpoint.patch("update", `/${plural}/:id`, { ...changedOne, payload: patch }).annotateMerge(
        about(`update${Name}`, "update", updated)
      ),
      put,
      ...switched,
      HttpApiEndpoint.delete("delete", `/${plural}/:id`, { ...one, success: deleted }).annotateMerge(
        about(`delete${Name}`, "delete", {
          answer: Object.assign({ id: example.record["id"] ?? "", deleted: true }, resource.deleted?.example),
          errors: [...found, ...(errors.delete ?? [])]
        })
      ),
      ...((others ?? []) as Others)
    )
    .middleware(Authorization)
    .annotateMerge(OpenApi.annotations({ title: typeName(plural), description: resource.description }))
}
