import { testClients } from './run-clients.ts';

testClients('agents');
