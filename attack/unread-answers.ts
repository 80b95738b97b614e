import { type Attack, crowd, get } from './attack.ts'

const connections = 100
const list = get('/api/rpc?method=cell_list&id=1&params=%7B%22limit%22%3A200%7D')

export const unreadAnswers: Attack = {
  name: `${connections} connections ask for 8 MiB each and read nothing`,
  run: async (target, over) => {
    const cut = await crowd(target, connections, over, (socket) => {
      socket.pause().write(list)
      // A client that does not read notices the cut only by writing.
      const touch = setInterval(() => socket.write('\r\n'), 250)
      socket.once('close', () => clearInterval(touch))
    })
    return `${cut} connections cut`
  },
}
