import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import fs from 'node:fs'
import { type TestService, testService } from '../testing/index.ts'
import { call, dataOf, rpc, send } from '../../test/helpers/http.ts'

let test: TestService
beforeAll(async () => {
  test = await testService({ app_settings: true })
})
afterAll(() => test.close())
it('x', async () => {
  const r = await send(test.url, { path: '/api/openrpc.json' })
  console.log(r.status, r.headers, r.text.length)
  fs.writeFileSync('/tmp/openrpc.json', r.text)
  const o = await send(test.url, { path: '/api/openapi.json' })
  console.log(o.status, o.text.length)
  fs.writeFileSync('/tmp/openapi.json', o.text)
})
