/** `cellkeep/testing`: a real service on a real PostgreSQL, for the tests of an application. */
export type { TestDaemonToken } from './parts.ts'
export { type ScenarioExpectation, scenario } from './scenario.ts'
export {
  type TestAccount,
  type TestOptions,
  type TestService,
  type TestSession,
  testService,
} from './service.ts'
