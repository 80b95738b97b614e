import { expect, test as it } from 'vitest'
import { call, open, statuses, untilClosed } from '../../test/helpers/http.ts'
import { serviceForFile } from '../../test/helpers/service.ts'

const test = await serviceForFile({ trusted_proxies: ['127.0.0.1'] })
const size = 131_072

it('large anonymous bodies take turns by client, whichever proxy brings them', async () => {
  const begun = async (ip: string, body: string) => {
    const socket = await open(test.url)
    const closed = untilClosed(socket)
    socket.write(
      `POST /api/rpc HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: ${ip}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ${size}\r\n\r\n${body}`,
    )
    return { socket, closed }
  }
  // Four bodies are read at a time, each until it gives way after a second; the others wait.
  const many = await Promise.all(Array.from({ length: 40 }, () => begun('198.51.100.1', ' ')))
  let over = 0
  for (const { closed } of many) closed.then(() => over++)
  const other = await begun('198.51.100.2', JSON.stringify(call('account_verify')).padEnd(size))
  expect(statuses(await other.closed)).toEqual([401])
  expect(over).toBeLessThan(20)
  for (const { socket } of many) socket.destroy()
})
