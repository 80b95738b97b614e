import { afterAll } from 'vitest'
import { type TestOptions, type TestService, testService } from '../../src/testing/service.ts'

/** A service for the tests of a file, or of the `describe` that is being collected; it closes after them. */
export async function serviceForFile(options?: TestOptions): Promise<TestService> {
  let test: TestService | undefined
  afterAll(() => test?.close())
  test = await testService(options)
  return test
}
