import { any, isEmpty, list, mapped, option, selectOr } from "../engine/Fields.ts"
import { anything, operation } from "../engine/Operation.ts"

export const pickFromList = operation({
  key: "utility.pick_from_list",
  label: "Pick from a list",
  description: "One of the elements that are not empty",
  fields: {
    list: mapped(list("List", { required: true })),
    operation: option(
      selectOr("Which", { first: "First", last: "Last", random: "Any" }, null, {
        takes: "a whole number, from 0 on, or negative from the end",
        read: (value) => {
          const read = typeof value === "string" && /^-?\d{1,6}$/.test(value) ? Number(value) : value
          return Number.isSafeInteger(read) ? (read as number) : null
        }
      })
    ),
    default: any("Default", { default: "" })
  },
  lines: "aggregate",
  random: true,
  output: { result: anything },
  warnings: ["NO_MATCH", "RANDOM_SEEDED"],
  errors: ["FORMATTER_CONFIG_INVALID"],
  sample: { inputs: { list: ["", "a", "b"] }, options: { operation: "first" }, output: { result: "a" } },
  run: ({ default: preset, list, operation }, call) => {
    const kept = list.filter((one) => !isEmpty(one))
    const place =
      operation === "first"
        ? 0
        : operation === "last"
          ? -1
          : operation === "random"
            ? Math.floor(call.random() * kept.length)
            : operation
    if (operation === "random") call.warn("RANDOM_SEEDED", "the element is drawn from the run's seed")
    const found = kept.at(place)
    if (found === undefined) call.warn("NO_MATCH", "the list has no such element", "list")
    return { result: found ?? preset }
  }
})
