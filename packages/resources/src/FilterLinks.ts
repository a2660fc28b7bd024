/** The copies of stored filters in the rules of connections, for the code that stores them. */
export { type FilterVersion, linkedRule } from "@tidegate/rules/StoredFilter"
