/** The copies of stored filters that the rules of connections hold, for whoever stores them. */
export { type FilterVersion, linkedRule } from "@tidegate/rules/StoredFilter"
