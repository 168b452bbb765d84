import { testClients } from './run-clients.ts';

testClients('rust');
