/** Builds the dashboard, as `npm start` does before the gateway starts. Nothing is done while it is up to date. */
export const buildDashboard = async (): Promise<void> => {
  await import(new URL("../../apps/dashboard/build.mjs", import.meta.url).href)
}
